"""The search for settings that do more, without changing what is promised."""
