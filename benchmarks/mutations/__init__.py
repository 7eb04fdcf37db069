"""mutations: what the verdicts notice, and what they don't.

    python -m benchmarks mutations --seeds 200 --output benchmarks/results/mutations.md

For every workload and seed real processes do a little work on real files. Then the files are changed
behind their backs, one change at a time, on a copy: rows through SQLite, bytes in the file itself. The
verdict must fail and name what was changed; where nothing was changed it must not.
"""
