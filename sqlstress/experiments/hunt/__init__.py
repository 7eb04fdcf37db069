"""The experiment `hunt`: rounds with random load and random pauses, until one shows a race."""
