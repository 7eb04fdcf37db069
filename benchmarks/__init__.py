"""sqlstress measured against its limit and its peers: `python -m benchmarks --help`, from the checkout."""
