"""The sentences of what is found of applications, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "thread-did-not-end": Phrase(
        "Processes of your application did not end by themselves: {count:plural thread} ({names}) still "
        "ran 2 s after the last transaction, and ended with their process. daemon=True lets a process end.",
        count=4,
        names=["poller"],
    ),
}
