"""What setup.cfg can't say: the description, and the native loop, left out where there is no compiler."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

HOME = Path("sqlstress/targets/native")
# Hidden: SQLite loads it as an extension, and then all that the process loads afterwards sees what it has.
FLAGS = [] if sys.platform == "win32" else ["-Wall", "-Wextra", "-fvisibility=hidden"]
# A free-threaded Python has no stable ABI up to 3.14: there the loop is left out.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

# On a package index the README has no repository around it: links into that become their words.
DESCRIPTION = re.sub(
    r"!?\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", Path("README.md").read_text(encoding="utf-8")
)

setup(
    long_description=DESCRIPTION,
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
