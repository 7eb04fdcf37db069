"""Changes of single bytes in the files."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from random import Random
from typing import Any

from benchmarks.mutations.change import Change, Mutation, NothingToChange
from benchmarks.mutations.sites import Site, sites
from benchmarks.mutations.trial import Trial
from sqlstress.targets.sqlite.files import opened
from sqlstress.targets.sqlite.pages import Tree
from sqlstress.targets.sqlite.space import trees_of

Rows = dict[str, Counter[tuple[Any, ...]]]
"""Table → its rows."""


def flip(part: str) -> Mutation:
    """Return what flips bits of a random byte that belongs to such a part of a page."""

    def mutate(trial: Trial, random: Random) -> Change:
        bucket = random.randrange(trial.case.buckets)
        before = _rows(trial, bucket)
        by_page: dict[int, list[Site]] = {}
        for site in _sites(trial, bucket):
            if site.part == part:
                by_page.setdefault(site.page, []).append(site)
        if not by_page:
            raise NothingToChange
        # A page first: else the few pages of small things would never be met.
        site = random.choice(by_page[random.choice(sorted(by_page))])
        image = bytearray(trial.images[trial.paths[bucket]])
        was = image[site.offset]
        image[site.offset] ^= random.randrange(1, 256)
        trial.paths[bucket].write_bytes(image)
        text = f"byte {site.offset} (page {site.page}) from {was:#04x} to {image[site.offset]:#04x}"
        return Change(text, (tuple(_names(trial, bucket, site, before)),))

    return mutate


def _sites(trial: Trial, bucket: int) -> list[Site]:
    if bucket not in trial.sites:
        path = trial.paths[bucket]
        with opened(trial.case, path) as connection:
            trees = trees_of(connection)
        numbered = {tree.name for tree in trees if _is_numbered(trial, bucket, tree)}
        trial.sites[bucket] = list(sites(trial.images[path], trees, numbered))
    return trial.sites[bucket]


def _is_numbered(trial: Trial, bucket: int, tree: Tree) -> bool:
    """Return whether a table's first column is its rowid."""
    columns = trial.rows(f"PRAGMA table_info('{tree.name}')", bucket=bucket)
    first_is_integer_key = bool(columns) and columns[0][2] == "INTEGER" and columns[0][5] == 1
    return first_is_integer_key and not tree.keyed and sum(column[5] > 0 for column in columns) == 1


def _names(trial: Trial, bucket: int, site: Site, before: Rows) -> list[str]:
    """Return what may name a byte: its page, its index, the schema, or a row that now reads otherwise."""
    found = [f"page {site.page}", f"page {site.other}"] if site.tree else ["freelist"]
    if site.tree:
        # A row that an index lacks is told with the index's name.
        others = {one.tree for one in _sites(trial, bucket) if one.tree and one.tree.is_index}
        found += sorted(tree.name for tree in others if tree.table == site.tree.table)
    if site.tree and site.tree.name == "sqlite_schema":
        found.append("schema")
    after = _rows(trial, bucket)
    for table in before.keys() & after.keys():
        differing = (before[table] - after[table]) + (after[table] - before[table])
        if len(differing) < 20:
            found += [word for row in differing for word in trial.words(trial, table, row)]
    return found


def _rows(trial: Trial, bucket: int) -> Rows:
    """Return all rows of a file that can be read."""
    found: Rows = {}
    with closing(sqlite3.connect(trial.paths[bucket])) as connection:
        connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (name,) in names:
                found[name] = Counter(connection.execute(f'SELECT * FROM "{name}" NOT INDEXED'))
        except (sqlite3.Error, UnicodeDecodeError):
            pass  # what can't be read names nothing
    return found
