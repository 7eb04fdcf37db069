"""Built-in scripts (pgbench's three, and bank), their tables, and invariants of the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlstress.target import serves
from sqlstress.user_work.options import Invariant

ACCOUNTS, TELLERS, PERSONS, MONEY = 100_000, 10, 1_000, 100
"""Numbers of accounts, tellers and persons per unit of scale, and a person's initial balance."""


class BuiltIn(NamedTuple):
    tables: str
    """Name of the set of tables that the script needs: "tpcb" or "bank"."""
    text: str
    at_server: str = ""
    """Text for servers, where transactions lock rows explicitly; empty if `text` is for all targets."""

    def text_for(self, driver: str) -> str:
        """Return `at_server` if it is set and the driver connects to a server, else `text`."""
        return self.at_server if self.at_server and serves(driver) else self.text


_DRAWN = f"""\\set aid random(1, {ACCOUNTS} * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, {TELLERS} * :scale)
\\set delta random(-5000, 5000)
"""
_UPDATE = "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
_SELECT = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
_HISTORY = (
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)\n"
    "  VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n"
)
_PAID = f"""\\set payer random(1, {PERSONS} * :scale)
\\set payee 1 + (:payer + random(0, {PERSONS} * :scale - 2)) % ({PERSONS} * :scale)
\\set amount random(1, {MONEY})
"""
_TRANSFER = """SELECT balance AS has FROM bank_accounts WHERE id = :payer \\gset
\\if :has >= :amount
UPDATE bank_accounts SET balance = balance - :amount WHERE id = :payer;
UPDATE bank_accounts SET balance = balance + :amount WHERE id = :payee;
\\endif
COMMIT;
"""
SCRIPTS = {
    "tpcb-like": BuiltIn(
        "tpcb",
        f"{_DRAWN}BEGIN;\n{_UPDATE}{_SELECT}"
        "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
        "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n"
        f"{_HISTORY}COMMIT;\n",
    ),
    "simple-update": BuiltIn("tpcb", f"{_DRAWN}BEGIN;\n{_UPDATE}{_SELECT}{_HISTORY}COMMIT;\n"),
    "select-only": BuiltIn("tpcb", f"\\set aid random(1, {ACCOUNTS} * :scale)\n{_SELECT}"),
    "bank": BuiltIn(
        "bank",
        f"{_PAID}BEGIN IMMEDIATE;\n{_TRANSFER}",
        # All transactions lock rows in the same order, which prevents deadlocks.
        f"{_PAID}BEGIN;\n"
        "SELECT id FROM bank_accounts WHERE id IN (:payer, :payee) ORDER BY id FOR UPDATE;\n"
        f"{_TRANSFER}",
    ),
}


def _insert_rows(table: str, columns: str, count: int, values: str) -> str:
    numbers = f"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
    return f"INSERT INTO {table} ({columns}) {numbers} SELECT {values} FROM n"


def setup(tables: Collection[str], scale: int) -> Iterator[str]:
    """Yield SQL for all targets that creates and fills sets of tables ("tpcb", "bank")."""
    if "tpcb" in tables:
        for name, columns in (
            ("branches", "bid INTEGER PRIMARY KEY, bbalance INTEGER"),
            ("tellers", "tid INTEGER PRIMARY KEY, bid INTEGER, tbalance INTEGER"),
            ("accounts", "aid INTEGER PRIMARY KEY, bid INTEGER, abalance INTEGER"),
            ("history", "tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TIMESTAMP"),
        ):
            yield f"CREATE TABLE pgbench_{name} ({columns}, filler TEXT)"
        yield _insert_rows("pgbench_branches", "bid, bbalance", scale, "i, 0")
        tellers = f"i, (i - 1) / {TELLERS} + 1, 0"
        yield _insert_rows("pgbench_tellers", "tid, bid, tbalance", scale * TELLERS, tellers)
        accounts = f"i, (i - 1) / {ACCOUNTS} + 1, 0, '{' ' * 84}'"
        yield _insert_rows("pgbench_accounts", "aid, bid, abalance, filler", scale * ACCOUNTS, accounts)
    if "bank" in tables:
        yield "CREATE TABLE bank_accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)"
        yield _insert_rows("bank_accounts", "id, balance", scale * PERSONS, f"i, {MONEY}")


_SUM = "(SELECT coalesce(sum({}), 0) FROM pgbench_{})"


def checks(scripts: Collection[str], scale: int) -> Iterator[Invariant]:
    """Yield the invariants that hold if only these scripts write to the tables."""
    accounts, history = _SUM.format("abalance", "accounts"), _SUM.format("delta", "history")
    tellers, branches = _SUM.format("tbalance", "tellers"), _SUM.format("bbalance", "branches")
    if {"tpcb-like", "simple-update"} & set(scripts):
        yield _equal("accounts agree with the history", accounts, history)
    if "tpcb-like" in scripts:
        yield _equal("tellers agree with branches", tellers, branches)
        if "simple-update" not in scripts:
            yield _equal("accounts agree with branches", accounts, branches)
    if "bank" in scripts:
        money = "(SELECT coalesce(sum(balance), 0) FROM bank_accounts)"
        yield _equal("the bank's money is what it was", money, str(scale * PERSONS * MONEY))
        query = "SELECT id, balance FROM bank_accounts WHERE balance < 0"
        yield Invariant("nobody owes the bank", "built in", query)


def _equal(name: str, one: str, other: str) -> Invariant:
    return Invariant(
        name, "built in", f"SELECT * FROM (SELECT {one} AS a, {other} AS b) AS found WHERE a <> b"
    )
