"""The experiment with cycles: insert rows, delete all of them, insert rows again, and what each costs."""
