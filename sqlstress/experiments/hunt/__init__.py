"""The hunt: rounds of a drawn load with drawn pauses, until a race is found."""
