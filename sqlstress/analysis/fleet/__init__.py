"""A fleet: what the reports of many hosts say of them, as data.

Hosts are never pooled, but for the totals of those that loaded one server together.
"""

from sqlstress.analysis.fleet.conclusions import conclude, differing_facts
from sqlstress.analysis.fleet.gather import Fleet, LeftOut, gathered
from sqlstress.analysis.fleet.host import Host, Measured, host_of
from sqlstress.analysis.fleet.joint import Joint, Total
from sqlstress.analysis.fleet.tables import Row, Table

__all__ = [
    "Fleet",
    "Host",
    "Joint",
    "LeftOut",
    "Measured",
    "Row",
    "Table",
    "Total",
    "conclude",
    "differing_facts",
    "gathered",
    "host_of",
]
