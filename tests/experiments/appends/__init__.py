"""An experiment in one folder: N processes append rows to a table of one file."""
