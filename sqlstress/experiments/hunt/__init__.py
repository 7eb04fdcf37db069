"""Hunt: rounds with a random load and random pauses, until a race is found."""
