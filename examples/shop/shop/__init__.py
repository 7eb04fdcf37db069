"""A small shop, written with Django."""
