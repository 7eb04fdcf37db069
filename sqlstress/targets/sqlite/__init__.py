"""SQLite: drivers, files and buckets, settings, space, damage, and the disk below."""
