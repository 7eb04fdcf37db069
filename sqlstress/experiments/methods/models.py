"""The two tables as Peewee's models."""

from __future__ import annotations

from typing import ClassVar

import peewee


class Sample(peewee.Model):
    """A sample is a file."""

    id = peewee.AutoField()
    path = peewee.TextField(unique=True)

    class Meta:
        table_name = "sample"


class Result(peewee.Model):
    """What was computed of a pair of samples; -1 while it has not been."""

    a = peewee.ForeignKeyField(Sample)
    b = peewee.ForeignKeyField(Sample)
    val = peewee.FloatField(default=-1)
    a_id: int  # the columns themselves, to which Peewee gives these names
    b_id: int

    class Meta:
        table_name = "result"
        primary_key = peewee.CompositeKey("a", "b")
        constraints: ClassVar = [peewee.Check("a_id < b_id")]


MODELS = (Sample, Result)
