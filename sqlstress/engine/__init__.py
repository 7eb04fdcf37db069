"""Execution of trials: worker processes, their common window, the timed loop and the clean-up."""
