"""A report as a single HTML file without external resources, with interactive plots."""
