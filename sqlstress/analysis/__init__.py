"""What a report says: pure functions from reports to findings."""

from sqlstress.analysis.advice import advise, advise_group
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, group_runs

__all__ = ["Finding", "Group", "advise", "advise_group", "group_runs"]
