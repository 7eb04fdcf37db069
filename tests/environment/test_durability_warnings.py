"""What is said of durability: by journal mode, synchronous, fullfsync, system and library."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.report.case import Settings
from tests.environment.hand_made import APPLE, BUILD, LINUX, SOUND_MAC, codes, on_mac, text, with_settings


def test_full_commits_on_macos_without_fullfsync_are_noted() -> None:
    assert codes(on_mac(Settings())) == {"macos-fsync-not-durable": False}
    assert codes(on_mac(Settings(synchronous=None))) == {"macos-fsync-not-durable": False}
    assert codes(on_mac(Settings(fullfsync=True), Settings())) == {"macos-fsync-not-durable": False}
    assert codes(on_mac(Settings(synchronous="normal"))) == {"durability": False}


def test_the_default_of_apples_build_is_noted() -> None:
    left = replace(on_mac(Settings(synchronous=None)), builds=(APPLE,))
    assert codes(left) == {"apple-build": False, "durability": False}
    assert "apple-build" not in codes(replace(left, host=LINUX))
    assert "apple-build" not in codes(replace(left, builds=(BUILD,)))
    assert "apple-build" not in codes(replace(left, settings=(Settings(),)))
    assert "apple-build" not in codes(
        replace(left, settings=(Settings(journal_mode="delete", synchronous=None),))
    )


def test_the_fullfsync_of_apples_build_is_noted() -> None:
    assert codes(replace(SOUND_MAC, builds=(APPLE,))) == {"apple-fullfsync": False}
    assert codes(SOUND_MAC) == {}
    assert "apple-fullfsync" not in codes(replace(on_mac(Settings()), builds=(APPLE,)))


@pytest.mark.parametrize("journal", ["wal", "delete", "persist"])
def test_synchronous_off_is_noted(journal: str) -> None:
    facts = with_settings(Settings(journal_mode=journal, synchronous="off"))
    assert codes(facts) == {"durability": False}
    assert "synchronous=OFF" in text(facts, "durability")


def test_synchronous_normal_in_wal_mode_is_noted() -> None:
    facts = with_settings(Settings(synchronous="normal"))
    assert codes(facts) == {"durability": False}
    assert "NORMAL" in text(facts, "durability")


@pytest.mark.parametrize("asked", ["1", "NORMAL", "on"])
def test_a_level_given_as_a_pragma_counts(asked: str) -> None:
    assert codes(with_settings(Settings(pragmas=(("Synchronous", asked),)))) == {"durability": False}


def test_the_librarys_own_level_counts_where_none_is_asked_for() -> None:
    left = with_settings(Settings(synchronous=None))
    assert codes(left) == {}
    lax = replace(BUILD, compile_options=("DEFAULT_SYNCHRONOUS=1", "DEFAULT_WAL_SYNCHRONOUS=2"))
    assert codes(replace(left, builds=(lax,))) == {}
    assert codes(replace(left, builds=(APPLE,))) == {"durability": False}
    silent = replace(BUILD, compile_options=())
    assert codes(replace(left, builds=(silent,))) == {}
    inherited = replace(BUILD, compile_options=("DEFAULT_SYNCHRONOUS=1",))
    assert codes(replace(left, builds=(inherited,))) == {"durability": False}


@pytest.mark.parametrize(
    ("journal", "synchronous", "noted"),
    [
        ("delete", "normal", "corrupt"),
        ("delete", "full", "undo"),
        ("delete", "extra", ""),
        ("truncate", "normal", "damaged"),
        ("truncate", "full", ""),
        ("persist", "normal", "corrupt"),
        ("persist", "full", ""),
        ("wal", "full", ""),
    ],
)
def test_what_a_power_failure_can_do_to_a_rollback_journal_is_noted(
    journal: str, synchronous: str, noted: str
) -> None:
    facts = with_settings(Settings(journal_mode=journal, synchronous=synchronous))
    assert codes(facts) == ({"durability": False} if noted else {})
    if noted:
        assert noted in text(facts, "durability")


@pytest.mark.parametrize("journal", ["off", "memory"])
def test_a_database_without_a_journal_on_disk_is_serious(journal: str) -> None:
    facts = with_settings(Settings(journal_mode=journal))
    assert codes(facts) == {"no-journal-on-disk": True}
    assert journal.upper() in text(facts, "no-journal-on-disk")
