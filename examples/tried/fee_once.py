"""The migration inserts one row."""


def the_migration_ran_at_most_once(query):
    ((n,),) = query("SELECT count(*) FROM fee")
    assert n <= 1, f"it ran {n} times"
