"""The way in. Workers import this module again, so it imports nothing but what it needs to look away."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; return the exit code."""
    try:
        from sqlstress.cli.run_command import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130  # before, or after, the command line was there to answer


if __name__ == "__main__":
    sys.exit(main())
