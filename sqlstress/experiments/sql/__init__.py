"""The experiment `sql`, which runs the user's SQL scripts (pgbench dialect) in N processes."""
