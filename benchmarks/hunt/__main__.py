"""The way in."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from benchmarks.hunt.command import main

    sys.exit(main(sys.argv[1:]))
