"""Studies: measurements that decide after each trial which trial is next, or whether to stop."""
