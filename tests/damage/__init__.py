"""Changes of the files of a trial, which its verdict must report."""
