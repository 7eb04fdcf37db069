"""The experiment `sql`: the user's SQL scripts, in the dialect of pgbench, run by N processes."""
