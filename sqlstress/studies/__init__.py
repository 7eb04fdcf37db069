"""Studies, which choose each measurement by the results so far."""
