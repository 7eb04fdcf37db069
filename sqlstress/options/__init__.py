"""Options: what one is, how its value is read, from flags and plans alike."""
