"""The shop's load with the fixed settings."""

from __future__ import annotations

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings_fixed"

from load import every_piece_is_in_stock_or_sold, order, products

__all__ = ["every_piece_is_in_stock_or_sold", "order", "products"]
