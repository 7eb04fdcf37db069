"""Messages in pieces: each comes as it was sent, and nobody waits for the rest of one."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import Pipe
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.system.child import MORE, PIECE, send
from sqlstress.system.processes import Inbox, wait_some

Ends = tuple[Inbox, Any]
PATIENCE_S = 60.0


@pytest.fixture
def ends() -> Iterator[Ends]:
    """An inbox, and the pipe's other end."""
    ours, theirs = Pipe()
    yield Inbox(ours), theirs
    ours.close()
    theirs.close()


def send_all(pipe: Any, messages: list[object]) -> None:
    for message in messages:
        send(pipe, [message])


@given(st.lists(st.one_of(st.integers(), st.binary(), st.integers(0, 8 * PIECE).map(bytes)), max_size=5))
def test_messages_of_any_length_come_in_their_order(messages: list[object]) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        inbox = Inbox(ours)
        sender = Thread(target=send_all, args=(theirs, messages))
        sender.start()  # a pipe of Windows holds 8 KiB, so that somebody must read meanwhile
        received = list[object]()
        while len(received) < len(messages):
            if wait_some([ours], PATIENCE_S):
                received.extend(inbox.receive() or [])
        sender.join()
        assert received == messages
        assert inbox.receive() is None


def test_a_message_that_no_pipe_holds_comes_whole(ends: Ends) -> None:
    inbox, theirs = ends
    message = bytes(range(256)) * 10_000
    sender = Thread(target=send, args=(theirs, message))
    sender.start()
    while (found := inbox.receive()) is None:
        pass
    sender.join()
    assert found == message


def test_nobody_waits_for_the_rest_of_a_message(ends: Ends) -> None:
    inbox, theirs = ends
    theirs.send_bytes(MORE + bytes(PIECE))
    assert inbox.receive() is None


def test_who_is_gone_in_the_middle_of_a_message_is_told(ends: Ends) -> None:
    inbox, theirs = ends
    theirs.send_bytes(MORE + bytes(PIECE))
    theirs.close()
    with pytest.raises((EOFError, ConnectionError)):
        inbox.receive()
