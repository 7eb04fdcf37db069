"""hunt: how soon `sqlstress hunt` finds what is there, and that it finds nothing where nothing is.

    python -m benchmarks hunt --hunts 20                                  this SQLite
    python -m benchmarks hunt --hunts 20 --python OTHER --driver apsw     that of another environment
    python -m benchmarks hunt --hunts 10 --amalgamation sqlite3.c         faults made in that source

Each hunt has a seed of its own and ends with its first finding, or after --max-time. With an amalgamation
of a SQLite without the WAL-reset bug, each fault of `benchmarks/hunt/mutants.py` is compiled into a library
that the sqlite3 of this Python then loads (Linux, LD_LIBRARY_PATH); first comes the source as it is.
"""
