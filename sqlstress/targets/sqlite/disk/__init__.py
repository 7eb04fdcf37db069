"""What a power cut leaves of a disk: a pure model of files, of folder entries and of syncs.

A log of operations (operations.py) is applied to a Disk (disk.py), which knows what is durable and
what is not yet. What becomes of the rest is a fate (fates.py), and an image is the files that remain.
"""
