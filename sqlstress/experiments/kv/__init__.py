"""The key-value workload: random gets and replaces, and the proof that nothing was lost."""
