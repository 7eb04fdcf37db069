"""A visitor's action: buying a product."""

from __future__ import annotations

from django.db import transaction

from shop.models import Order, Product


@transaction.atomic
def buy(product_id: int, pieces: int) -> None:
    product = Product.objects.get(id=product_id)
    product.stock -= pieces
    product.save()
    Order.objects.create(product=product, pieces=pieces)
