"""Transactions whose traces tell, after a crash, which of them are there, and whether each is whole."""
