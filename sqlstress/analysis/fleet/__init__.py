"""A fleet: what the reports of many hosts say of them, as data. Hosts are never pooled."""

from sqlstress.analysis.fleet.conclusions import conclude, differing_facts
from sqlstress.analysis.fleet.gather import Fleet, LeftOut, gathered
from sqlstress.analysis.fleet.host import Host, Measured, host_of
from sqlstress.analysis.fleet.tables import Row, Table

__all__ = [
    "Fleet",
    "Host",
    "LeftOut",
    "Measured",
    "Row",
    "Table",
    "conclude",
    "differing_facts",
    "gathered",
    "host_of",
]
