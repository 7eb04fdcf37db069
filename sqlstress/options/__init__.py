"""Options: definitions, and parsers of values from the command line and from plans (TOML)."""
