"""Version of sqlstress. Its own module: the package's `__init__` names everything else for type checkers."""

__version__ = "0.2.0"
