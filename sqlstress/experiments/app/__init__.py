"""The user's own application: a Python file whose transactions several processes run at once."""
