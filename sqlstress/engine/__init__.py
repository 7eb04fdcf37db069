"""Execution of trials: worker processes, timed load and clean-up."""
