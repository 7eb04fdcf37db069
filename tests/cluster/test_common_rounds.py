"""Tests of what is asked of hosts that load one server together; they need no cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from sqlstress.cluster.connection import Connection, Member
from sqlstress.cluster.rounds import CommonRounds, FleetRequest
from sqlstress.errors import UsageError

SERVER = 'driver = "psycopg"\ndsn = "postgresql://me:geheim@127.0.0.1:1/mine"\n[[case]]\nworkload = "kv"\n'


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ('[[case]]\nworkload = "kv"\n', "every case needs target"),
        (SERVER.replace('dsn = "postgresql://me:geheim@127.0.0.1:1/mine"\n', ""), "every case needs target"),
        (
            f'{SERVER}[[case]]\nworkload = "kv"\ndsn = "postgresql://me:geheim@127.0.0.1:2/mine"\n',
            "one server",
        ),
        (SERVER.replace("[[case]]", "[[case]]\nops = 10"), "needs windows"),
        (SERVER.replace("[[case]]", '[[case]]\nwarmup = "0s"'), "needs a warmup"),
    ],
    ids=["no server", "one of our own", "two servers", "no window", "no warm-up"],
)
def test_what_hosts_can_t_do_together_is_refused(tmp_path: Path, plan: str, named: str) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    file = tmp_path / "plan.toml"
    file.write_text(plan, encoding="utf-8")
    with pytest.raises(UsageError, match=named) as found:
        FleetRequest.of(file, tmp_path / "new", ".", "5m", None, together=True)
    assert "geheim" not in str(found.value)


def test_hosts_that_load_one_server_are_asked_as_others_are(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    file = tmp_path / "plan.toml"
    file.write_text(SERVER, encoding="utf-8")
    assert FleetRequest.of(file, tmp_path / "new", ".", "5m", None, together=True).together


def test_a_plan_may_hold_a_password_and_is_in_no_task_of_the_cluster(tmp_path: Path) -> None:
    """Dask tells and logs what a task was called with."""
    found: dict[str, list[str]] = {"tasks": [], "tickets": []}

    class Cluster:
        def submit(self, expression: str, worker: str, key: str) -> None:
            found["tasks"].append(f"{expression} {key}")

        def put_ticket(self, name: str, order: str) -> None:
            found["tickets"].append(order)

    asked = FleetRequest(SERVER, tmp_path, ".", 60.0, None, together=True)
    rounds = CommonRounds(cast(Connection, Cluster()), asked, lambda text: None)
    for name in ("anna", "bert"):
        rounds._introduced.append(Member(f"tcp://{name}:1", None, 0.0, name))
    rounds._begin({"tcp://anna:1", "tcp://bert:1"}, 0.0)
    assert len(found["tasks"]) == 2 and not any("geheim" in task for task in found["tasks"])
    orders = [json.loads(order) for order in found["tickets"]]
    assert [json.loads(one["together"])["host"] for one in orders] == ["anna", "bert"]
    assert all(json.loads(one["together"])["asked"] == ["anna", "bert"] for one in orders)
    assert all("geheim" in one["plan"] for one in orders)
