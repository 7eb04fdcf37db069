"""A target that does nothing: what remains is the harness's own cost."""
