"""Experiment watch: it shows which processes hold the locks of a database that other programs use now."""
