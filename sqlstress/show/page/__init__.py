"""A report as one HTML file that needs nothing else: tables, sentences, and plots to look into."""
