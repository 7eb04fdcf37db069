"""The kinds of operations of the key-value workload."""

from __future__ import annotations

KINDS = ("get", "replace", "update", "pair")
GET, REPLACE, UPDATE, PAIR = range(len(KINDS))
