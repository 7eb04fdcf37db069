"""The experiment `watch`, which shows which processes hold the locks of a database in use."""
