"""The bank with SQLAlchemy. On SQLite it writes BEGIN IMMEDIATE itself, as its manual says.

sqlstress app examples/app/bank_sqlalchemy.py
sqlstress app examples/app/bank_sqlalchemy.py --target sqlite,postgres
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from sqlstress import check, connect, setup, transaction

ACCOUNTS, MONEY = 10, 1000


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "account"
    id: Mapped[int] = mapped_column(primary_key=True)
    balance: Mapped[int]


@connect
def engine(database: str) -> Engine:
    if database.startswith("postgresql:"):
        return create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    made = create_engine(f"sqlite:///{database}", connect_args={"timeout": 30})

    @event.listens_for(made, "connect")
    def opened(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")

    @event.listens_for(made, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return made


@setup
def accounts(database: str) -> None:
    made = engine(database)
    Base.metadata.create_all(made)
    with Session(made) as session, session.begin():
        session.add_all(Account(id=number, balance=MONEY) for number in range(ACCOUNTS))
    made.dispose()


@transaction
def transfer(engine: Engine) -> None:
    source, target = random.sample(range(ACCOUNTS), 2)
    with Session(engine) as session, session.begin():
        # Rows are locked in the order of their numbers to avoid deadlocks. SQLite does not need that.
        for account, change in sorted([(source, -10), (target, 10)]):
            session.get_one(Account, account, with_for_update=True).balance += change


@check
def no_money_appears(query: Callable[..., Any]) -> None:
    ((total,),) = query("SELECT sum(balance) FROM account")
    assert total == ACCOUNTS * MONEY, f"there are {total}, not {ACCOUNTS * MONEY}"
