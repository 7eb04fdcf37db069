"""Products with a stock, and their orders."""

from __future__ import annotations

from django.db import models


class Product(models.Model):
    stock = models.IntegerField()


class Order(models.Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE)
    pieces = models.IntegerField()
