"""The experiment `crash`: kills writers, then checks that every acknowledged transaction is in the files."""
