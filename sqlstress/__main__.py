"""The way in. Workers import this module again, so it imports nothing but what it needs to look away."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; return the exit code."""
    from sqlstress.cli.run_command import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
