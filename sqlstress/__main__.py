"""Entry point of the command line.

Worker processes import this module again, so at the top it imports only the standard library.
"""

from __future__ import annotations

import os
import sys


def occupy_standard_descriptors() -> None:
    """Open the null device in place of each closed standard stream.

    Otherwise, the next opened database would get the descriptor of the stream, and printed text would damage
    the database.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def discard_unwritable_output() -> None:
    """Write the buffers of the standard streams; if a write fails, send the buffer to the null device.

    Otherwise Python writes the buffers again when it ends. If that fails, for example because a pipe is
    closed, it prints an error and ends with its exit code 120.
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
        # Python remembers a KeyboardInterrupt that was raised within an exec(), as dataclasses use it, even
        # after the exception was caught. `python -m` would end with SIGINT instead of our exit code. A
        # further exec() clears the memory.
        exec("")


if __name__ == "__main__":
    sys.exit(main())
