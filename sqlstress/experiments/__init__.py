"""The experiments, a package each; see `sqlstress.experiment` for the face that each has."""
