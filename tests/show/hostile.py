"""A report in which every text of external origin tries to inject markup or commands."""

from dataclasses import replace
from typing import Any

from sqlstress.report import Check, Report, Run, Trial, Verdict, Warning
from sqlstress.statistics.series import WAL_SIZE, Series
from tests.show.variants import EXAMPLE, each_run

HUGE = "<b>" + "A" * 200_000
NASTY = (
    "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    "<svg onload=document.title='owned'>\"'><a href='javascript:document.title=1'>&lt;x&gt;\u2028\u2029"
    "]]><!--%0A::error::owned\r\n::error title=owned::owned | `code` **bold** \x1b[31m\x00\x07\u202e"
)


def hostile_report() -> Report:
    """Return the example with hostile texts in every field that accepts one, and a huge text in some."""
    environment = EXAMPLE.environment
    (build,) = environment.builds
    return replace(
        each_run(_hostile_run),
        created=NASTY,
        command=("sqlstress", NASTY, "--pragma", HUGE, "it's"),
        tool_version=NASTY,
        environment=replace(
            environment,
            host=replace(environment.host, **_texts("system", "release", "machine", "processor", "python")),
            file_system=replace(environment.file_system, **_texts("kind", "device", "options")),
            builds=(
                replace(
                    build, **_texts("driver_version", "version", "source_id"), compile_options=(NASTY, HUGE)
                ),
            ),
            warnings=(Warning(NASTY, NASTY, serious=True), Warning("huge", HUGE, serious=True)),
        ),
    )


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, NASTY)


def _hostile_run(run: Run) -> Run:
    return replace(
        run,
        trials=tuple(map(_hostile_trial, run.trials)),
        warnings=(Warning(NASTY, NASTY, serious=True),),
        error=NASTY if run.case.concurrency == 8 else None,
    )


def _hostile_trial(trial: Trial) -> Trial:
    worker = replace(trial.workers[0], error=NASTY, operations={NASTY: 1})
    checks = (Check(NASTY, "failed", 5, 2, (NASTY, HUGE), NASTY), Check(NASTY, "unknown", note=NASTY))
    return replace(
        trial,
        verdict=Verdict(checks) if len(trial.workers) == 2 else trial.verdict,
        effective={NASTY: NASTY},
        note=NASTY,
        workers=(worker, *trial.workers[1:]),
        latency={NASTY: trial.latency["get"], "--c1": trial.latency["get"], **trial.latency},
        series=(Series(WAL_SIZE, NASTY, (1, 2, 3), (0, 10, 20)), Series(NASTY, NASTY, (1, 2))),
    )
