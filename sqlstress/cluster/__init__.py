"""A cluster of hosts: one plan, measured on each of them, whose reports come back. Needs `distributed`."""
