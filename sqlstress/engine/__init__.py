"""Execution of trials (single runs of a load): worker processes, timed loop and clean-up."""
