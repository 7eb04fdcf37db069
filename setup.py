"""What setup.cfg can't say: the native loop, which is left out where there is no compiler; its ABI."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

HOME = Path("sqlstress/targets/native")
# Hidden: SQLite loads it as an extension, and then all that the process loads afterwards sees what it has.
FLAGS = [] if sys.platform == "win32" else ["-Wall", "-Wextra", "-fvisibility=hidden"]
# A free-threaded Python has no stable ABI up to 3.14: there the loop is left out.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
    ext_modules=[
        Extension(
            "sqlstress.targets.native._native",
            sorted(path.as_posix() for path in HOME.glob("*.c")),
            depends=sorted(path.as_posix() for path in HOME.glob("*.h")),
            extra_compile_args=FLAGS,
            py_limited_api=STABLE_ABI,
            optional=True,
        )
    ],
)
