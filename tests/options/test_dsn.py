"""The password of a connection string is never shown, for strings of any form."""

import json
import pickle
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.options.dsn import HIDDEN, Dsn, dsn, redact_words
from sqlstress.report import jsonable
from sqlstress.report.case import Case, Server
from tests.drawing import CHARACTERS

pytest.importorskip("psycopg")

SECRET = "s3cr3t"
words = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True, alphabet=CHARACTERS)
secrets = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).map(
    lambda text: f"{SECRET}{text}{SECRET}"
)
"""Passwords of any characters, with a marker at both ends that no other part contains."""


@st.composite
def connection_strings(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a connection string of any form, and its text without the password."""
    user, host, database = draw(words), draw(words), draw(words)
    port, secret = draw(st.integers(1, 65535)), draw(secrets)
    shown = f"{user}@{host}:{port}/{database}"
    form = draw(st.sampled_from(("user info", "query", "keywords")))
    if form == "user info":
        return f"postgresql://{user}:{quote(secret, safe='')}@{host}:{port}/{database}", shown
    if form == "query":
        return f"postgres://{user}@{host}:{port}/{database}?password={quote(secret, safe='')}", shown
    quoted = secret.replace("\\", "\\\\").replace("'", "\\'")
    return f"host={host} port = {port} password='{quoted}' user={user} dbname={database}", shown


@given(connection_strings())
def test_dsn_is_shown_without_the_password(string_and_shown: tuple[str, str]) -> None:
    text, shown = string_and_shown
    parsed = dsn(text)
    assert (str(parsed), repr(parsed), f"{parsed}", parsed.whole) == (shown, repr(shown), shown, text)


@given(connection_strings())
def test_password_is_neither_in_reports_nor_in_command_lines(string_and_shown: tuple[str, str]) -> None:
    text, shown = string_and_shown
    case = Case(driver="psycopg", server=Server(dsn(text)))
    plain = json.dumps(jsonable.to_plain(case), ensure_ascii=False)
    assert shown in plain and SECRET not in plain
    assert SECRET not in repr(case)
    for command in (("--dsn", text), (f"--dsn={text}",), (f"dsn={text}",)):
        command_text = " ".join(redact_words(("sqlstress", *command, "-c", "4")))
        assert shown in command_text and SECRET not in command_text


@given(connection_strings())
def test_pickled_dsn_keeps_the_password(string_and_shown: tuple[str, str]) -> None:
    parsed: Dsn = pickle.loads(pickle.dumps(dsn(string_and_shown[0])))
    assert (parsed, parsed.whole, parsed.is_local) == (string_and_shown[1], string_and_shown[0], False)


@given(secrets)
def test_unquoted_password_is_not_shown_either(secret: str) -> None:
    # The text after an @ is always taken as the host.
    without_host = f"postgresql://me:{secret.replace('@', '')}"
    for text in (f"postgresql://me:{secret}@h/db", f"host=h password={secret} user=me", without_host):
        try:
            shown = str(dsn(text))
        except ValueError as error:
            shown = str(error)
        assert SECRET not in shown
        assert SECRET not in " ".join(redact_words(("sqlstress", "--dsn", text)))


@given(st.text(CHARACTERS))
def test_any_text_is_parsed_or_refused_without_repeating_it(text: str) -> None:
    try:
        dsn(f"{SECRET} {text} {SECRET}")
    except ValueError as error:
        assert SECRET not in str(error)


def test_arm_of_an_ab_test_is_shown_without_the_password() -> None:
    half = f"--driver psycopg --dsn postgresql://me:{SECRET}@localhost/db"
    single_option = f"--dsn=postgresql://me:{SECRET}@localhost/db"
    assert redact_words((f"--a={single_option}",)) == ("--a=--dsn=me@localhost:5432/db",)
    for command in (("--a", half), (f"--a={half}",)):
        command_text = " ".join(redact_words(("sqlstress", "ab", *command)))
        assert SECRET not in command_text
        assert "--dsn me@localhost" in command_text and "/db" in command_text
    assert redact_words(("--a", f"--dsn {SECRET} 'x")) == ("--a", HIDDEN)


@given(st.lists(st.text(st.sampled_from("-dsn= '\"\\x"), max_size=20) | st.just("--dsn"), max_size=3))
def test_any_command_can_be_redacted(words: list[str]) -> None:
    assert len(redact_words(words)) == len(words)


@pytest.mark.parametrize(
    ("text", "is_local"),
    [
        ("postgresql:///db?host=/run/postgresql", True),
        ("postgresql://localhost/db", True),
        ("postgresql://127.0.0.3:6432/db", True),
        ("postgresql://[::1]/db", True),
        ("host=@abstract", True),
        ("postgresql://db.example.org/db", False),
        ("postgresql://192.0.2.1/db", False),
        ("host=localhost,db.example.org", False),
        ("host=localhost hostaddr=192.0.2.1", False),
        ("service=production", False),
    ],
)
def test_server_is_local_if_every_host_is(text: str, is_local: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert dsn(text).is_local is is_local


def test_dsn_includes_variables_of_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.org")
    monkeypatch.setenv("PGUSER", "me")
    monkeypatch.setenv("PGPASSWORD", SECRET)
    parsed = dsn("postgresql:///some")
    assert (str(parsed), parsed.is_local) == ("me@db.example.org:5432/some", False)


@pytest.mark.parametrize(
    "value", ["", "  ", 5, None, "postgresql://u:a@b@c/d", "postgresql://u:a/b@c/d", "nothing"]
)
def test_invalid_connection_string_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="connection string"):
        dsn(value)
