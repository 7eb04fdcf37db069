"""Studies: what decides its next measurement from the last ones."""
