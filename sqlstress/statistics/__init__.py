"""Statistics: comparisons, sequential test of A/B tests, search for a rate, histograms, series, and units."""
