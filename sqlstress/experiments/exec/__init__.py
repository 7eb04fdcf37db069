"""The experiment with commands: any program, started over and over by N processes at once on one database."""
