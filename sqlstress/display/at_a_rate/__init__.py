"""How cases are shown whose operations were due at a rate: the same for every experiment."""
