"""Execution of trials: worker processes, the timed loop in a common window, and the clean-up."""
