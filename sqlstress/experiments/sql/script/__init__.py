"""Scripts in the dialect of pgbench: read with their places, checked, and compiled to calls.

Source: https://www.postgresql.org/docs/current/pgbench.html. Integers are those of C with 64 bits: a result
that does not fit is an error, and so is a division by zero, of doubles too; what has no value, such as the
root of a negative number, is an error where pgbench goes on with NaN. Variables are bound, never pasted.
"""
