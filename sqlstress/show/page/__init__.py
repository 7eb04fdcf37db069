"""A report as one HTML file without external resources: tables, sentences, and interactive plots."""
