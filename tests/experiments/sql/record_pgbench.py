"""Asks the real pgbench what expressions are, and writes it down for the tests.

python -m tests.experiments.sql.record_pgbench /usr/lib/postgresql/15/bin

That folder has PostgreSQL's programs (Debian: apt-get install postgresql). A server runs meanwhile in a
temporary folder, on a socket there; as root, by `su postgres`.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATA = Path(__file__).with_name("pgbench_expressions.json")
SEED = 7
DRAWN = 700
ERROR = "error"

CHOSEN = """
7 / 2 | -7 / 2 | 7 / -2 | -7 / -2 | 7 % 3 | -7 % 3 | 7 % -3 | 7 / 2.0 | 1 / 0 | 1 % 0 | 1.0 / 2 | 2 + 3 * 4
(2 + 3) * 4 | 2 - 3 - 4 | -2 - -3 | - 2 * 3 | +5 | 9223372036854775807 | 9223372036854775808
-9223372036854775808 | 9223372036854775807 + 1 | -9223372036854775808 - 1 | 9223372036854775807 * 2
-9223372036854775808 / -1 | -9223372036854775808 % -1 | abs(-9223372036854775808) | abs(-3) | abs(-3.5)
int(2.5) | int(3.5) | int(-2.5) | int(-2.7) | int(2.7) | int(1e18) | int(1e19) | int(5.4 + 3.8) | double(3)
double(5432) | int(true) | double(true) | int(null) | least(5, 4, 3, 2) | least(5, 4.5) | greatest(1, 2, 3)
greatest(1, 2.5) | least(null, 1) | least(7) | mod(54, 32) | mod(-7, 3) | mod(7, 0) | mod(7.5, 2) | 7.5 % 2
pi() | sqrt(2.0) | sqrt(2) | ln(2.718281828459045) | exp(1.0) | pow(2.0, 10) | power(2, 10) | pow(2, -1)
1 < 2 | 1 < 2.5 | 2 <= 2 | 2 <> 3 | 2 != 3 | 2 = 2.0 | 2 > 3 | 3 >= 3 | 1 < 2 < 3
(1 < 2) = (2 < 3) | 1 = 1 = 1 | null = null = null | 1 < 2 and 2 < 3 | 1 = 2 is null
true and false | true or null | false or null | null and false | null and true | not null | not true
not 1 = 2 | 1 and true | true and 1 | not 5 | null is null | 5 is null | 5 is not null | 5 isnull | 5 notnull
null isnull | true is true | 5 is true | null is true | false is not true | 1 + null | null / 0 | null = null
case when true then 1 else 2 end | case when false then 1 end | case when null then 1 else 2 end
case when 1 > 2 then 1 when 2 > 1 then 2 else 3 end | case when 1 then 2 else 3 end
case when false then 1 / 0 else 5 end
false and 1 / 0 = 1 | true or 1 / 0 = 1 | 6 & 3 | 6 | 3 | 6 # 3 | ~ 5 | ~5 + 1 | 1 << 4 | 256 >> 2 | -8 >> 1
1 << 63 | 1 | 2 + 4 | 1 & 2 = 0 | 6 & 3 << 1 | 2.5 & 1 | 1.5e3 | .5 | 5. | 1e2
5.0 / 0 | 1e308 * 10 | 3 - -3 | 3 - - 3
hash(10, 5432) | hash_murmur2(10, 5432) | hash_fnv1a(10, 5432) | hash_fnv1a(-1, 0) | hash(0, 0)
hash(-9223372036854775808, -1) | hash_fnv1a(123456789012345, 9) | hash(1.4, 3) | hash(null, 3)
permute(0, 1) | permute(0, 2, 1) | permute(1, 2, 1) | permute(0, 100, 5432) | permute(99, 100, 5432)
permute(12345, 1000000, 7) | permute(3, 7, 0) | permute(4, 7, 0) | permute(1000, 7, 0) | permute(-1, 7, 0)
permute(5, 9223372036854775807, 3) | permute(0, 0, 1) | permute(0, -3, 1) | permute(null, 5, 1)
random(5, 4) | random(7, 7) | random_gaussian(1, 10, 1.9) | random_exponential(1, 10, 0.0)
random_zipfian(1, 10, 1.0) | random_zipfian(3, 3, 1.5) | random_gaussian(4, 4, 2.5)
random_exponential(4, 4, 1)
random(-9223372036854775808, 9223372036854775807) | random(1.4, 1.2) | debug(5) | true | null | TRUE | nUlL
true = true | true < false | 1 is null = true | not true = false | not not true | 5 isnull or true
2 * -3 | 2 - (-9223372036854775807) | 1 +2 | 1.0 | -0.0 | 0.1 + 0.2 | 1 / 3.0 | 100 * 0.07
"""


def chosen() -> list[str]:
    """Return the expressions that were chosen; the sign for OR of bits stands between two others' too."""
    found = []
    for line in CHOSEN.strip().splitlines():
        parts = [part.strip() for part in line.split(" | ")]
        found += parts
    return [*found, "6 | 3", "1 | 2 + 4", "1 | 6 & 3", "4 | 1 = 5"]


def drawn(count: int) -> Iterator[str]:
    """Yield expressions of all that there is."""
    source = random.Random(SEED)
    for _ in range(count):
        yield _expression(source, 3)


def _expression(source: random.Random, depth: int) -> str:
    kind = source.randrange(8) if depth else 0
    inner = [_expression(source, depth - 1) for _ in range(3)] if kind else []
    if kind < 2:
        return source.choice(
            [
                "0",
                "1",
                "2",
                "-3",
                "7",
                "10",
                "2.5",
                "-0.5",
                "1e3",
                "true",
                "false",
                "null",
                "4611686018427387904",
            ]
        )
    if kind < 6:
        sign = source.choice(
            ["+", "-", "*", "/", "%", "<", "<=", "=", "<>", ">", ">=", "and", "or", "&", "|", "#"]
        )
        return f"{inner[0]} {sign} {inner[1]}"
    if kind == 6:
        name = source.choice(["int", "double", "not ", "-", "~ ", "+"])
        return f"{name}({inner[0]})"
    return source.choice(
        [
            f"least({inner[0]}, {inner[1]})",
            f"greatest({inner[0]}, {inner[1]}, {inner[2]})",
            f"case when {inner[0]} then {inner[1]} else {inner[2]} end",
            f"({inner[0]}) is null",
            f"({inner[0]}) is not true",
            f"hash({inner[0]}, 3)",
            f"hash_fnv1a({inner[0]}, 3)",
            f"permute({inner[0]}, 1000, 3)",
            f"({inner[0]})",
        ]
    )


@contextmanager
def server(programs: Path, folder: Path) -> Iterator[None]:
    """Run a server on a socket in a folder."""
    data = folder / "data"
    as_user = _as_user()
    subprocess.run([*as_user, programs / "initdb", "-D", data, "-A", "trust", "-U", "tester"], check=True)
    command: list[str | Path] = [*as_user, programs / "postgres", "-D", data, "-k", folder]
    command += ["-c", "listen_addresses="]
    with subprocess.Popen(command) as process:
        try:
            ready: list[str | Path] = [programs / "pg_isready", "-h", folder]
            while subprocess.run(ready, stdout=subprocess.DEVNULL).returncode:
                if process.poll() is not None:
                    raise SystemExit("the server did not start")
            yield
        finally:
            process.terminate()


def _as_user() -> list[str | Path]:
    return (
        ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        if sys.platform != "win32" and os.geteuid() == 0
        else []
    )


def value(programs: Path, folder: Path, expression: str) -> str:
    """Return what pgbench says of an expression: its type and value, or that it is an error."""
    script = folder / "script.sql"
    script.write_text(f"\\set x debug({expression})\n", encoding="utf-8")
    command: list[str | Path] = [programs / "pgbench", "-h", folder, "-U", "tester", "-n", "-t", "1"]
    command += ["-f", script, "postgres"]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    found = re.findall(r"^debug\(script=0,command=1\): (.*)$", said, re.MULTILINE)
    aborted = "aborted" in said or "error" in said or "fatal" in said.lower()
    return ERROR if aborted or not found else str(found[-1])


def main(programs: Path) -> None:
    folder = Path(tempfile.mkdtemp())
    shutil.chown(folder, "postgres") if sys.platform != "win32" and os.geteuid() == 0 else None
    expressions = list(dict.fromkeys([*chosen(), *drawn(DRAWN)]))
    told = subprocess.run([programs / "pgbench", "--version"], capture_output=True, text=True)
    try:
        with server(programs, folder):
            found = {each: value(programs, folder, each) for each in expressions}
    finally:
        shutil.rmtree(folder)
    text = json.dumps({"pgbench": told.stdout.strip(), "values": found}, indent=0)
    DATA.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
