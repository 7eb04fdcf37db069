"""The shop's own test: four processes buy at the same time.

python -m pytest examples/shop/test_shop.py
"""

from __future__ import annotations

from typing import Any


def test_four_processes_can_buy_at_the_same_time(sqlstress: Any) -> None:
    report = sqlstress.app("load_fixed.py", concurrency=4, duration=1)
    assert report.ok, report
