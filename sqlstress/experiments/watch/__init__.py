"""Watch: the processes that hold the locks of a database that other programs use now."""
