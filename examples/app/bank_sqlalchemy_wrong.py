"""The SQLAlchemy bank with default settings: the session reads before Python has begun a transaction."""

from __future__ import annotations

from bank_sqlalchemy import accounts, no_money_appears, transfer
from sqlalchemy import Engine, create_engine

from sqlstress import connect

__all__ = ["accounts", "no_money_appears", "transfer"]


@connect
def engine(database: str) -> Engine:
    return create_engine(f"sqlite:///{database}", connect_args={"timeout": 30})
