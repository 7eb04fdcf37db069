"""The experiment with primary keys: its cases are schemas with types of identifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError
from sqlstress.experiment import CommandLine, Experiment
from sqlstress.experiments.classics.keys import ID_TYPES, SCHEMAS, KeysRequest, KeysSelection, Picks
from sqlstress.options.option import options_of, select_options
from sqlstress.report.case import SETTINGS, Case, common, otherwise
from sqlstress.request import check_locking

if TYPE_CHECKING:
    from sqlstress.experiments.classics.keys_show import KeysShown
    from sqlstress.experiments.classics.keys_work import KeysWork
    from sqlstress.experiments.classics.keys_worker import KeysSource

MOST_ROWS = 10_000_000
"""Maximum number of picks: the proof compares all of them in memory."""
PICK_S = 50e-6
USERS = 150
"""Default number of users: with the published 1000, five passes take several minutes."""


def _check_together(request: KeysRequest) -> None:
    if request.selection.full and "schema" in request.given:
        raise UsageError("--full measures every schema. Leave out --full or --schema.")
    load = request.spec
    if load.most_picks > load.items:
        raise UsageError(
            f"--picks {load.picks} needs up to {load.most_picks:,} distinct items, and --items is "
            f"{load.items:,}. Lower --picks or raise --items."
        )
    if load.users * load.picks > MOST_ROWS:
        raise UsageError(f"--users times --picks is more than {MOST_ROWS:,} rows. Lower one of them.")
    if (most := request.most_processes) > load.users:
        raise UsageError(f"--users {load.users} is less than the {most} processes. Raise --users.")
    check_locking(request)


_PICKS = options_of(Picks)
_OTHERWISE = {
    "synchronous": otherwise("synchronous", default="normal"),
    "pragma": otherwise("pragma", help="Any other PRAGMA. May be repeated. foreign_keys is on by default."),
}


class KeysExperiment(Experiment):
    """Primary keys."""

    name = "keys"
    spec = Picks
    key = "picks"
    command = CommandLine(
        name="keys",
        summary="Primary keys: integers, UUIDs and ULIDs, in five schemas.",
        help=(
            "Measure primary keys: concurrent writers insert rows whose ids are integers, UUIDs or ULIDs.\n\n"
            "Each user picks about 100 items in one transaction. The report shows the time and space of each "
            "type of id, by schema. It takes less than a minute."
        ),
        main_options=("schema", "id-type", "full", "users", "concurrency", "synchronous", "output"),
        example="sqlstress keys --schema id-rowid --id-type uuid4,uuid7 -o keys.json",
    )
    options = (
        otherwise("concurrency", default="4"),
        *select_options(_PICKS, "schema"),
        *select_options(options_of(KeysSelection)),
        *select_options(_PICKS, "id-type"),
        otherwise("repeat", default=5),
        replace(_PICKS["users"], default=USERS),
        *select_options(_PICKS, "picks", "items", "begin"),
        *(_OTHERWISE.get(name) or common(name)[0] for name in SETTINGS),
        *common("driver", "verify", "max-failed", "seed"),
    )
    selection = KeysSelection
    label_fields = frozenset(("schema", "id_type"))

    def cases(self, request: KeysRequest) -> Iterator[Case]:
        """Yield the cases, schemas outside, types inside. Raises UsageError."""
        full = request.selection.full
        schemas = SCHEMAS if full else request.values_for("schema")
        id_types = ID_TYPES if full and "id-type" not in request.given else request.values_for("id-type")
        _check_together(request)
        settings = request.settings
        if "foreign_keys" not in dict(settings.pragmas):
            settings = request.with_settings(pragmas=(("foreign_keys", "on"), *settings.pragmas))
        for schema, concurrency, id_type in product(schemas, request.values_for("concurrency"), id_types):
            picks = replace(request.spec, schema=schema, id_type=id_type)
            yield replace(request.case, settings=settings, concurrency=concurrency, spec=picks)

    def table_key(self, case: Case) -> Case:
        work = replace(case.spec, schema="", id_type="")
        return replace(case, concurrency=1, seed=0, spec=work)

    def work_label(self, case: Case) -> str:
        return f"{case.spec.schema}, {case.spec.id_type}"

    def rate_units(self, case: Case) -> str:
        return "rows"

    def estimated_s(self, case: Case) -> float:
        picks: Picks = case.spec
        return PICK_S * picks.users * picks.picks

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> KeysWork:
        from sqlstress.experiments.classics.keys_work import KeysWork

        return KeysWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., KeysSource]:
        from sqlstress.experiments.classics.keys_worker import KeysSource

        return KeysSource

    def presenter(self) -> KeysShown:
        from sqlstress.experiments.classics.keys_show import KeysShown

        return KeysShown()
