"""Presentation of reports: blocks (paragraphs, tables, plots), and formats that draw them."""
