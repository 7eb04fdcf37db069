"""Hunt: rounds with a random load and random pauses, until a round shows a race in SQLite or in the user's
work."""
