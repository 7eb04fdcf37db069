"""Primary keys: users pick items; what identifies a pick, and what that costs in time and space."""
