"""What programs appended to "DATABASE.passed", a client in a line for each call: at most 20 of each."""

import os
from collections import Counter
from pathlib import Path


def at_most_20_pass(query):
    notes = Path(os.environ["SQLSTRESS_DATABASE"] + ".passed")
    passed = Counter(notes.read_text().splitlines() if notes.exists() else ())
    over = {client: times for client, times in passed.items() if times > 20}
    assert not over, f"{len(over)} of {len(passed)} clients, such as {max(over.values())} calls"
