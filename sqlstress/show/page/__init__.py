"""A report as a single HTML file without external resources: tables, sentences, and interactive plots."""
