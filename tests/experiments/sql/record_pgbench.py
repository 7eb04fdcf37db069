"""Record the values of expressions in the real pgbench, for the tests.

python -m tests.experiments.sql.record_pgbench

It uses the pgbench of the PostgreSQL that sqlstress finds, and runs a server of it.
"""

import json
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlstress.targets.postgres.dialect import programs
from sqlstress.targets.postgres.server import running

DATA = Path(__file__).with_name("pgbench_expressions.json")
SEED = 7
DRAWN = 200
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
not 1 = 2 | 1 and true | true and 1 | not 5 | null is null | 5 is null | 5 is not null
true is true | 5 is true | null is true | false is not true | 1 + null | null / 0 | null = null
case when true then 1 else 2 end | case when false then 1 end | case when null then 1 else 2 end
case when 1 > 2 then 1 when 2 > 1 then 2 else 3 end | case when 1 then 2 else 3 end
case when false then 1 / 0 else 5 end | false and 1 / 0 = 1 | true or 1 / 0 = 1 | 1.5e3 | .5 | 5. | 1e2
5.0 / 0 | 1e308 * 10 | 3 - -3 | 3 - - 3 | hash(10, 5432) | hash(0, 0) | hash(-9223372036854775808, -1)
hash(1.4, 3) | hash(null, 3) | random(5, 4) | random(7, 7) | random_gaussian(1, 10, 1.9)
random_exponential(1, 10, 0.0) | random_zipfian(1, 10, 1.0) | random_zipfian(3, 3, 1.5)
random_gaussian(4, 4, 2.5) | random_exponential(4, 4, 1) | random(1.4, 1.2) | true | null | TRUE | nUlL
random(-9223372036854775808, 9223372036854775807)
true = true | true < false | 1 is null = true | not true = false | not not true | 2 * -3
2 - (-9223372036854775807) | 1 +2 | 1.0 | -0.0 | 0.1 + 0.2 | 1 / 3.0 | 100 * 0.07
"""


def random_expressions(count: int) -> Iterator[str]:
    """Yield random expressions of all operators and functions."""
    source = random.Random(SEED)
    for _ in range(count):
        yield _expression(source, 3)


def _expression(source: random.Random, depth: int) -> str:
    kind = source.randrange(8) if depth else 0
    if kind < 2:
        return source.choice(["0", "1", "2", "-3", "7", "2.5", "-0.5", "1e3", "true", "null", f"{1 << 62}"])
    first, second, third = (_expression(source, depth - 1) for _ in range(3))
    if kind < 6:
        signs = ["+", "-", "*", "/", "%", "<", "<=", "=", "<>", ">", ">=", "and", "or"]
        return f"{first} {source.choice(signs)} {second}"
    if kind == 6:
        return f"{source.choice(['int', 'double', 'not ', '-', '+', ''])}({first})"
    return source.choice(
        [
            f"least({first}, {second})",
            f"greatest({first}, {second}, {third})",
            f"case when {first} then {second} else {third} end",
            f"({first}) is null",
            f"({first}) is not true",
            f"hash({first}, 3)",
        ]
    )


def value(dsn: str, expression: str) -> str:
    """Return pgbench's type and value of an expression, or that it is an error."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"\\set x debug({expression})\n")
        script.flush()
        command: list[str | Path] = [programs() / "pgbench", "-n", "-t", "1", "-f", script.name, dsn]
        said = subprocess.run(command, capture_output=True, text=True).stderr
    values: list[str] = re.findall(r"^debug\(script=0,command=1\): (.*)$", said, re.MULTILINE)
    aborted = "aborted" in said or "error" in said or "fatal" in said.lower()
    return ERROR if aborted or not values else values[-1]


def main() -> None:
    expressions = dict.fromkeys([*re.split(r" \| |\n", CHOSEN.strip()), *random_expressions(DRAWN)])
    version = subprocess.run([programs() / "pgbench", "--version"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), 5) as dsn:
        found = {each: value(dsn, each) for each in expressions}
    text = json.dumps({"pgbench": version.stdout.strip(), "values": found}, indent=0)
    DATA.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
