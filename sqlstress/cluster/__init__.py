"""A cluster of hosts: one plan, measured on each of them, whose reports come back. Needs `distributed`."""

from sqlstress.cluster.address import Cluster
from sqlstress.cluster.asked import Asked
from sqlstress.cluster.measured import MeasuredFleet, measure_fleet

__all__ = ["Asked", "Cluster", "MeasuredFleet", "measure_fleet"]
