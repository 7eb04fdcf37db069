"""Presentation of reports: blocks (paragraphs, tables and so on), and formats that draw them as text."""
