"""Statistics: comparisons, test of A/B tests, search for a rate, histograms, series, units."""
