"""Comparison: what reports say about each other, as data; and why they can't be compared, if so."""

from sqlstress.analysis.comparison.compared import Compared, Comparison, compare
from sqlstress.analysis.comparison.conclusions import conclude
from sqlstress.analysis.comparison.differences import Difference
from sqlstress.analysis.comparison.matching import LETTERS, Part, Table, match

__all__ = ["LETTERS", "Compared", "Comparison", "Difference", "Part", "Table", "compare", "conclude", "match"]
