"""The way in. Workers import this module again, so it imports nothing but what it needs to look away."""

from __future__ import annotations

import os
import sys


def occupy_standard_descriptors() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise a database or a pipe gets the number of a stream, and text for the stream goes into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def main() -> int:
    """Run the command line; return the exit code."""
    occupy_standard_descriptors()
    try:
        from sqlstress.system.interrupt import stop_no_more, stop_once

        stop_once()
        from sqlstress.cli.commands import run

        code = run(sys.argv[1:])
        stop_no_more()
        return code
    except KeyboardInterrupt:
        return 130  # before, or after, the command line was there to answer
    finally:
        # One that struck within an exec(), such as that of a dataclass, Python takes for caught by nobody,
        # and ends `-m` by SIGINT instead of our exit code. The next exec() makes it forget that.
        exec("")


if __name__ == "__main__":
    sys.exit(main())
