"""Who holds the locks of a database that other programs use now."""
