"""Statistics: comparison of figures, sequential test, search for a rate, histograms, series, units."""
