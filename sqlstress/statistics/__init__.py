"""Statistics: comparisons, the sequential test of the gate, search, histograms, series, and units."""
