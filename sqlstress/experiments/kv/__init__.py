"""The key-value workload: random gets and replaces, and the verification that no acknowledged write was
lost."""
