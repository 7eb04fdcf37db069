"""Published settings, measured in turns."""
