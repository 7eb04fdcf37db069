"""Tests of completion in a shell: commands, options, values and files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from sqlstress.cli.commands import cli, summaries
from tests.rows import mostly_thorough

SCRIPT = Path(sys.executable).parent / "sqlstress"
installed = pytest.mark.skipif(not SCRIPT.is_file(), reason="the command is not installed here")
BASH = shutil.which("bash")


def has_bash() -> bool:
    """Return whether there is a bash that click supports; that of macOS is older."""
    asked = 'echo "$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1]))"'
    return bool(BASH) and int(subprocess.check_output([str(BASH), "-c", asked])) >= 404


needs_bash = pytest.mark.skipif(sys.platform == "win32" or not has_bash(), reason="there is no bash 4.4")


def completed(*words: str) -> list[str]:
    """Return the completions of the last word; files and folders appear as their kind."""
    found = ShellComplete(cli, {}, "sqlstress", "_SQLSTRESS_COMPLETE").get_completions(
        [*words[:-1]], words[-1]
    )
    return [item.value if item.type == "plain" else item.type for item in found]


def test_first_word_is_a_command_or_an_option_of_the_default_command() -> None:
    assert completed("") == [*summaries()]
    assert completed("d") == ["doctor"]
    assert completed("--jour") == ["--journal-mode"]
    assert completed("--vers") == ["--version"]
    assert completed("--he") == ["--help"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("kv", "--journal-m"), ["--journal-mode"]),
        (("--concurrency", "4", "--journal-m"), ["--journal-mode"]),
        (("limit", "sql", "--builti"), ["--builtin"]),
        (("--journal-mode", ""), ["wal", "delete", "truncate", "persist", "memory", "off"]),
        (("kv", "--journal-mode", "W"), ["wal"]),
        (("kv", "--journal-mode=w"), ["wal"]),
        (("limit", "s"), ["sql"]),
        (("ab", "--metric", ""), ["tps", "p99"]),
        (("--fullfsync", ""), ["on", "off"]),
        (("keys", "--id-type", "uuid4,ul"), ["uuid4,ulid"]),
        (("--concurrency", ""), []),
    ],
    ids=lambda value: " ".join(value),
)
def test_options_and_their_values_are_completed(words: Sequence[str], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("--dir", ""), "dir"),
        (("-o", "rep"), "file"),
        (("app", ""), "file"),
        (("sql", "--setup", "x"), "file"),
        (("report", "a.json", ""), "file"),
        (("run", ""), "file"),
    ],
    ids=lambda value: " ".join(value),
)
def test_files_and_folders_are_left_to_the_shell(words: Sequence[str], kind: str) -> None:
    assert completed(*words) == [kind]


def test_unknown_word_does_not_break_the_completion() -> None:
    assert "--version" in completed("bogus", "--")
    assert completed("kv", "bogus", "--journal-m") == ["--journal-mode"]


@installed
@needs_bash
@pytest.mark.parametrize("shell", mostly_thorough(["bash", "zsh", "fish"], ["bash"]))
def test_script_for_a_shell_is_printed(shell: str) -> None:
    environment = {**os.environ, "_SQLSTRESS_COMPLETE": f"{shell}_source"}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_SQLSTRESS_COMPLETE" in done.stdout and "_sqlstress_completion" in done.stdout


@installed
@needs_bash
def test_bash_completes_a_value_by_the_script() -> None:
    lines = (
        'eval "$(_SQLSTRESS_COMPLETE=bash_source sqlstress)"',
        "COMP_WORDS=(sqlstress --journal-mode w) COMP_CWORD=2",
        "_sqlstress_completion sqlstress",
        'echo "${COMPREPLY[@]}"',
    )
    environment = {**os.environ, "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [str(BASH), "-c", "\n".join(lines)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("wal\n", "")
