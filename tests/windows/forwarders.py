"""DLLs that only forward to others: they replace DLLs that Python's package or Wine lacks."""

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

TOOLS = "x86_64-w64-mingw32-"
_IMPORTED = re.compile(r"^__imp_(\w+)$", re.MULTILINE)


def make(file: Path, forwards: Mapping[str, str]) -> None:
    """Make a DLL whose names forward to those of other DLLs: `name` → `dll.name`."""
    with tempfile.TemporaryDirectory() as folder:
        definition, exports = Path(folder, "own.def"), Path(folder, "own.exp")
        lines = [f"LIBRARY {file.name}", "EXPORTS", *(f"  {name}={to}" for name, to in forwards.items())]
        definition.write_text("\n".join(lines), encoding="ascii")
        _tool("dlltool", "-d", str(definition), "-e", str(exports))
        _tool("ld", "--dll", "--entry", "0", "-o", str(file), str(exports))


def names_in(library: Path) -> list[str]:
    """Return the names in an import library."""
    return sorted(set(_IMPORTED.findall(_tool("nm", "--format=just-symbols", str(library)))))


def _tool(name: str, *arguments: str) -> str:
    done = subprocess.run([TOOLS + name, *arguments], capture_output=True, text=True, check=True)
    return done.stdout
