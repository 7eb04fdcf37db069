"""Windows' Python under Wine, set up from packages, and commands run with it: `python -m tests.windows`."""
