"""The saved reports that whatever shows reports is tried on, and what every format made of each of them."""
