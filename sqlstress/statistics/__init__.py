"""Numbers: compare, sequential (the gate) and search; histograms, series, and how quantities are written."""
