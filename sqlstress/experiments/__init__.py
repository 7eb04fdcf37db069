"""Experiments, a package each; `sqlstress.experiment` has their base class."""
