"""Studies: measurements that choose each trial by the results so far."""
