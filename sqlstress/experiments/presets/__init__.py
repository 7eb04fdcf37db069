"""Published settings of well-known projects, measured in turns on the user's own load."""
