"""What a report says: pure functions from reports to findings."""
