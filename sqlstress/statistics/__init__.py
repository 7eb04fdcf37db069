"""Numbers: histograms, shares, series, paired tests, the gate, and how quantities are written and read."""
