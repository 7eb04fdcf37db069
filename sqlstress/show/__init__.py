"""Presentation of reports: blocks (paragraphs, tables, plots), and the formats that draw these blocks."""
