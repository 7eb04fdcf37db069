"""SQL scripts of the user's, in the dialect of pgbench, run by N processes."""
