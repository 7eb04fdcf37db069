"""Hunt: rounds with random load and random pauses, until one shows a race in SQLite or in the user's work."""
