"""Options: their definition, and parsers of their values from the command line and from plans (TOML)."""
