"""Check of the file DATABASE.taken, which has a line for each job: no job appears twice."""

import os
from collections import Counter
from pathlib import Path


def each_job_is_taken_once(query):
    notes = Path(os.environ["SQLSTRESS_DATABASE"] + ".taken")
    taken = Counter(notes.read_text().splitlines()) if notes.exists() else Counter()
    twice = [job for job, times in taken.items() if times > 1]
    assert not twice, f"{len(twice)} of {len(taken)} jobs, such as {twice[0]}"
