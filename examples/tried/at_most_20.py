"""Check of the file DATABASE.passed, which has the client of each call in a line: at most 20 calls each."""

import os
from collections import Counter
from pathlib import Path


def at_most_20_pass(query):  # dialect: ok
    notes = Path(os.environ["SQLSTRESS_DATABASE"] + ".passed")
    passed = Counter(notes.read_text().splitlines() if notes.exists() else ())
    over = {client: times for client, times in passed.items() if times > 20}
    assert not over, f"{len(over)} of {len(passed)} clients, such as {max(over.values())} calls"
