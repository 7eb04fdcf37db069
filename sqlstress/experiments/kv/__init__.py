"""The key-value workload: random gets and replaces, and the proof that no write was lost."""
