"""Presentation of reports, independent of the format: blocks, columns, figures, plots as data, headings."""
