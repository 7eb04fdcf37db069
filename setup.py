"""The one thing that setup.cfg can't say: the native loop, which is left out where there is no compiler."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup

HOME = Path("sqlstress/targets/native")
# Hidden: SQLite loads it as an extension, and then all that the process loads afterwards sees what it has.
FLAGS = [] if sys.platform == "win32" else ["-Wall", "-Wextra", "-fvisibility=hidden"]

setup(
    ext_modules=[
        Extension(
            "sqlstress.targets.native._native",
            sorted(path.as_posix() for path in HOME.glob("*.c")),
            depends=sorted(path.as_posix() for path in HOME.glob("*.h")),
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
    ]
)
