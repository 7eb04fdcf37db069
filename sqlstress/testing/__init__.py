"""What pytest finds by itself: the fixture `sqlstress`."""
