"""How it is shown: what its tables, sentences and plots say; pure functions of a report."""
