"""Conclusions from reports, as findings: sentences stored with the facts that they state."""
