"""The way in. Workers import this module again, so it imports nothing but what it needs to look away."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from benchmarks.mutations.tried import main

    sys.exit(main(sys.argv[1:]))
