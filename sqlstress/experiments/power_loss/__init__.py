"""Transactions of several pages, and what a disk after a power cut must hold of them."""
