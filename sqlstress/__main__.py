"""Entry point of the command line.

Worker processes import this module again, so at import it loads only two standard modules.
"""

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
        from sqlstress.system.interrupt import ignore_stop_signals, install_stop_handlers

        install_stop_handlers()
        from sqlstress.cli.commands import run

        code = run(sys.argv[1:])
        ignore_stop_signals()
        return code
    except KeyboardInterrupt:
        return 130  # Ctrl-C before or after `run`, which handles it otherwise
    finally:
        # Python treats a KeyboardInterrupt raised within an exec(), such as a dataclass uses, as not caught,
        # and ends `python -m` with SIGINT instead of our exit code. Another exec() resets this.
        exec("")


if __name__ == "__main__":
    sys.exit(main())
