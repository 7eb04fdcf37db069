"""The parts of the setup that need code: the description, and the native loop, which is optional."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

HOME = Path("sqlstress/targets/native")
# SQLite loads the module as an extension, which would otherwise export its symbols to the whole process.
FLAGS = [] if sys.platform == "win32" else ["-Wall", "-Wextra", "-fvisibility=hidden"]
# A free-threaded Python has no stable ABI up to 3.14, so the loop is left out.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

# On a package index, links into the repository would be dead, so they are replaced by their texts.
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
