"""Changes of the table of picks."""

from __future__ import annotations

from random import Random
from typing import Any

from benchmarks.mutations.change import Change, changed
from benchmarks.mutations.trial import Trial
from sqlstress.experiments.keys import ids
from sqlstress.experiments.keys.ids import picked_by, picks_in
from sqlstress.experiments.keys.work import shown
from sqlstress.experiments.keys.worker import ITEMS, USERS

WHERE = "WHERE user = ? AND item = ?"


class Picks:
    """Who picked what, by the numbers of users and items, and their ids."""

    def __init__(self, trial: Trial) -> None:
        self.users, self.items = ([one for (one,) in trial.rows(sql)] for sql in (USERS, ITEMS))
        self.picked = {user: picked_by(trial.case, user) for user in range(len(self.users))}

    def ids(self, user: int, item: int) -> tuple[Any, Any]:
        """Return the ids of a user and of an item."""
        return self.users[user], self.items[item]

    def some(self, random: Random) -> tuple[int, int]:
        """Return a user and an item that it picked."""
        user = random.choice([*self.picked])
        return user, random.choice(self.picked[user])

    def not_picked(self, user: int, random: Random) -> int:
        """Return an item that a user did not pick."""
        return random.choice([item for item in range(len(self.items)) if item not in self.picked[user]])


def _pick(user: int, item: int) -> str:
    return f"user {user}'s pick of item {item}"


def drop(trial: Trial, random: Random) -> Change:
    """Drop a pick."""
    picks = Picks(trial)
    user, item = picks.some(random)
    trial.execute(f"DELETE FROM picks {WHERE}", *picks.ids(user, item))
    return changed(f"{_pick(user, item)} dropped", _pick(user, item))


def swap(trial: Trial, random: Random) -> Change:
    """Let two users swap two items of which each picked only one."""
    picks = Picks(trial)
    one, other = random.sample([*picks.picked], 2)
    ours, theirs = (set(picks.picked[user]) for user in (one, other))
    item, another = random.choice(sorted(ours - theirs)), random.choice(sorted(theirs - ours))
    for user, old, new in ((one, item, another), (other, another, item)):
        trial.execute(f"UPDATE picks SET item = ? {WHERE}", picks.items[new], *picks.ids(user, old))
    names = (_pick(one, item), _pick(other, another))
    return changed(" and ".join((*names, "swapped")), *names)


def duplicate(trial: Trial, random: Random) -> Change:
    """Insert a pick again, under another id if it has one."""
    picks = Picks(trial)
    user, item = picks.some(random)
    _insert(trial, *picks.ids(user, item))
    return changed(f"{_pick(user, item)} duplicated", _pick(user, item))


def duplicate_elsewhere(trial: Trial, random: Random) -> Change:
    """Let another user have picked the same item: no user can have picked one twice."""
    picks = Picks(trial)
    item = random.choice(sorted({item for items in picks.picked.values() for item in items}))
    user = random.choice([user for user, items in picks.picked.items() if item not in items])
    _insert(trial, *picks.ids(user, item))
    return changed(f"item {item} duplicated for user {user}", f"user {user} has picked item {item}")


def add(trial: Trial, random: Random) -> Change:
    """Add a pick that nobody was told of, of a user and an item that are there."""
    picks = Picks(trial)
    user = random.choice([*picks.picked])
    item = picks.not_picked(user, random)
    _insert(trial, *picks.ids(user, item))
    return changed(f"pick of item {item} by user {user} added", f"user {user} has picked item {item}")


def _insert(trial: Trial, user: Any, item: Any) -> None:
    load = picks_in(trial.case)
    if not load.own_id:
        trial.execute("INSERT INTO picks (user, item) VALUES (?, ?)", user, item)
        return
    if load.id_type == "int":
        own: Any = trial.rows("SELECT max(id) + 1 FROM picks")[0][0]
    else:
        own = ids.maker(load.id_type)()
    trial.execute("INSERT INTO picks (id, user, item) VALUES (?, ?, ?)", own, user, item)


def tear(trial: Trial, random: Random) -> Change:
    """Undo a part of a user's transaction."""
    picks = Picks(trial)
    user = random.choice([*picks.picked])
    items = picks.picked[user]
    undone = sorted(random.sample(items, random.randrange(1, len(items))))
    for item in undone:
        trial.execute(f"DELETE FROM picks {WHERE}", *picks.ids(user, item))
    return changed(f"{len(undone)} of {len(items)} picks undone", _pick(user, undone[0]))


def words(trial: Trial, table: str, row: tuple[Any, ...]) -> list[str]:
    """Return what a counter-example may call a row."""
    if table != "picks":
        return [shown(row[0]), str(row[1])]
    own_id = picks_in(trial.case).own_id
    found = [shown(row[0])] if own_id else []
    picks = Picks(trial)
    user, item = row[own_id], row[own_id + 1]
    if user in picks.users and item in picks.items:
        numbers = picks.users.index(user), picks.items.index(item)
        found += [_pick(*numbers), "user {} has picked item {}".format(*numbers)]
    return found
