"""The key-value workload: random gets and replaces, with proof that no acknowledged write was lost."""
