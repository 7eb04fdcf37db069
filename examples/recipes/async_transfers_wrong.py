"""The async transfers without the lock: a task commits or rolls back another task's unfinished transfer."""

from __future__ import annotations

import asyncio
import sqlite3

from async_transfers import TASKS, create, move, no_money_appears, open_it

from sqlstress import transaction

__all__ = ["create", "no_money_appears", "open_it"]


async def all_tasks(connection: sqlite3.Connection) -> None:
    await asyncio.gather(*(move(connection) for _ in range(TASKS)))


@transaction
def transfers(connection: sqlite3.Connection) -> None:
    asyncio.run(all_tasks(connection))
