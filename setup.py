"""The one thing that setup.cfg can't say: the native loop, which is left out where there is no compiler."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup

HOME = Path("sqlstress/targets/sqlite/native")
WARNINGS = [] if sys.platform == "win32" else ["-Wall", "-Wextra"]

setup(
    ext_modules=[
        Extension(
            "sqlstress.targets.sqlite.native._native",
            sorted(path.as_posix() for path in HOME.glob("*.c")),
            depends=sorted(path.as_posix() for path in HOME.glob("*.h")),
            extra_compile_args=WARNINGS,
            py_limited_api=True,
            optional=True,
        )
    ]
)
