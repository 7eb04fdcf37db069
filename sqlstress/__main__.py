"""Entry point of the command line.

Worker processes import this module again, so its top imports only the standard library.
"""

from __future__ import annotations

import os
import sys


def occupy_standard_descriptors() -> None:
    """Open the null device for each closed standard stream.

    Otherwise, the next opened database would get the stream's descriptor, and printed text would damage it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def discard_unwritable_output() -> None:
    """Flush the standard streams; send text that cannot be written to the null device.

    Otherwise Python writes the text again at exit and, for example if a pipe is closed, prints an error and
    exits with 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        except (AttributeError, ValueError):  # The stream is None or closed.
            continue


def main() -> int:
    """Run the command line and return its exit code."""
    occupy_standard_descriptors()
    try:
        from sqlstress.system.interrupt import ignore_stop_signals, install_stop_handlers

        install_stop_handlers()
        from sqlstress.cli.commands import run

        code = run(sys.argv[1:])
        ignore_stop_signals()
        return code
    except KeyboardInterrupt:
        return 130  # Ctrl-C before or after `run`, which handles Ctrl-C itself
    finally:
        discard_unwritable_output()
        # Python remembers a KeyboardInterrupt that was raised within an exec(), such as in dataclasses, even
        # after it was caught. `python -m` would end with SIGINT instead of our exit code. Another exec()
        # clears the memory.
        exec("")


if __name__ == "__main__":
    sys.exit(main())
