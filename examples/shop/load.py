"""The load for sqlstress: visitors buy, and no piece may appear or disappear.

sqlstress app examples/shop/load.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import django

from sqlstress import check, setup, transaction

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from shop.models import Product  # noqa: E402
from shop.orders import buy  # noqa: E402

PRODUCTS, STOCK = 20, 1_000_000


@setup
def products() -> None:
    call_command("migrate", run_syncdb=True, verbosity=0)
    Product.objects.bulk_create(Product(id=number, stock=STOCK) for number in range(1, PRODUCTS + 1))


@transaction
def order() -> None:
    buy(random.randint(1, PRODUCTS), pieces=1)


@check
def every_piece_is_in_stock_or_sold(query: Callable[..., Any]) -> None:
    ((stock,),) = query("SELECT sum(stock) FROM shop_product")
    ((sold,),) = query("SELECT coalesce(sum(pieces), 0) FROM shop_order")
    assert stock + sold == PRODUCTS * STOCK, f"{stock} in stock and {sold} sold, not {PRODUCTS * STOCK}"
