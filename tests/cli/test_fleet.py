"""Tests of `sqlstress fleet --folder`: any folder of reports becomes a page, and the bad ones are named."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.report import Check, Verdict, to_json
from tests.cli.conftest import Cli
from tests.crash_report import crash_report
from tests.fleet_reports import four_hosts, host_report, save
from tests.show.variants import each_trial

BOTH = {"a": host_report(), "b": host_report(minute=1)}


def test_reports_in_a_folder_are_shown_and_saved_in_every_format(cli: Cli) -> None:
    save(Path("reports"), four_hosts())
    outputs = [word for form in ("txt", "md", "html", "json") for word in ("-o", f"fleet.{form}")]
    shown = cli("fleet", "--folder", "reports", "--details", *outputs)
    assert (shown.code, shown.err) == (0, "")
    assert Path("fleet.txt").read_text(encoding="utf-8") == shown.out
    plain = json.loads(Path("fleet.json").read_text(encoding="utf-8"))
    assert [host["name"] for host in plain["hosts"]] == ["anna", "bert", "carl", "dora", "emil"]
    assert plain["cases"][0]["not_comparable"][0]["host"] == "dora"
    assert "Map of the hosts" in Path("fleet.html").read_text(encoding="utf-8")


def test_its_own_json_in_the_folder_is_no_report_and_no_error(cli: Cli) -> None:
    save(Path("reports"), BOTH)
    assert cli("fleet", "--folder", "reports", "-o", "reports/fleet.json").code == 0
    assert cli("fleet", "--folder", "reports") == cli("fleet", "--folder", "reports")
    assert "Left out" not in cli("fleet", "--folder", "reports").out


def test_reports_in_folders_below_are_called_by_their_folder(cli: Cli) -> None:
    for name, report in BOTH.items():
        save(Path("reports") / f"artifact-{name}", {"report": report})
    assert "artifact-a/report" in cli("fleet", "--folder", "reports").out


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "not a sqlstress report"),
        ("[1, 2]", "format_version is missing"),
        ("\x00\xff", "not a sqlstress report"),
        ('{"format_version": "9.0"}', "this sqlstress reads"),
        ('{"format_version": "1.4", "x": "' + "x" * (20 << 20) + '"}', "larger than 16 MiB"),
    ],
    ids=["cut", "list", "bytes", "later", "20 MB"],
)
def test_a_damaged_report_costs_itself_only(cli: Cli, text: str, named: str) -> None:
    save(Path("reports"), BOTH)
    Path("reports/bad.json").write_text(text, encoding="utf-8")
    shown = cli("fleet", "--folder", "reports")
    assert shown.code == 4 and len(shown.lines) == 1
    assert "not included: bad: " in shown.err and named in shown.err and "2 kept." in shown.err
    assert "A fleet of 2 hosts" in shown.out


def test_a_report_of_something_else_is_left_out_and_is_no_failure(cli: Cli) -> None:
    save(Path("reports"), {**BOTH, "killed": crash_report()})
    shown = cli("fleet", "--folder", "reports")
    assert (shown.code, shown.err) == (0, "")
    assert "Left out: killed: it is a report of crash" in shown.out


def test_the_same_report_twice_is_said_and_counted_once(cli: Cli) -> None:
    save(Path("reports"), BOTH)
    Path("reports/copy.json").write_text(json.dumps(json.loads(to_json(BOTH["a"]))), encoding="utf-8")
    shown = cli("fleet", "--folder", "reports")
    assert shown.code == 0 and "copy has the same content as a; it is counted once." in shown.out


@pytest.mark.skipif(sys.platform == "win32", reason="no file can have such a name there")
@pytest.mark.parametrize("form", ["txt", "md", "html", "json"])
def test_a_hostile_name_of_a_host_is_a_name_only(cli: Cli, form: str) -> None:
    hostile = '<script>alert(1)<|script>\x1b[31m\u202e`|*"'.replace("|script", "\\script")
    save(Path("reports"), {hostile: host_report(), "b" * 200: host_report(minute=1)})
    shown = cli("fleet", "--folder", "reports", "-o", f"{form}:-")
    assert shown.code == 0
    assert "\x1b" not in shown.out and "\u202e" not in shown.out
    if form == "html":
        assert "<script>alert" not in shown.out and "&lt;script&gt;alert" in shown.out
    if form == "json":
        assert json.loads(shown.out)["hosts"][0]["name"] == hostile
    if form == "txt":
        assert max(map(len, shown.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", "Name their folder: sqlstress fleet --folder reports"),
        ("--folder none", "no such folder"),
        ("--folder empty", "has no report"),
        ("plan.toml --folder empty", "--scheduler"),
        ("--folder empty --scheduler tcp://127.0.0.1:1", "--scheduler"),
        ("--folder empty --tls-ca x.pem", "need --scheduler"),
        ("--folder empty -o fleet.csv", "the formats are txt, md, html, json"),
    ],
)
def test_what_can_not_be_done_is_told_in_a_line(cli: Cli, words: str, named: str) -> None:
    Path("empty").mkdir()
    shown = cli("fleet", *words.split())
    assert (shown.code, shown.out) == (2, "") and named in shown.err


def test_the_folder_of_a_plan_is_called_as_the_plan(cli: Cli) -> None:
    Path("durable.toml").write_text('[[case]]\nworkload = "kv"\n', encoding="utf-8")
    Path("durable-fleet").mkdir()
    Path("durable-fleet", "of-others.json").touch()
    shown = cli("fleet", "durable.toml", "--scheduler", "tcp://127.0.0.1:1")
    assert shown.code == 2 and "durable-fleet" in shown.err


def test_wrong_data_on_a_host_is_exit_code_1(cli: Cli) -> None:
    lost = Verdict((Check("last write", "failed", 1, 1, ("key 7",)),))
    wrong = each_trial(lambda trial: replace(trial, verdict=lost), BOTH["b"])
    save(Path("reports"), {**BOTH, "b": wrong})
    shown = cli("fleet", "--folder", "reports")
    assert shown.code == 1 and "the data was wrong on b." in shown.err and "FAILED on b" in shown.out
