"""gate: how often `sqlstress ab` is wrong, on real databases.

    python -m benchmarks gate --minutes 30 --output benchmarks/results/gate.md
    python -m benchmarks gate simulate --output benchmarks/results/gate-simulated.md

A against A, and A against A slowed by a known share: each experiment is a whole A/B test with its looks
and its verdict. What is written is read again, so the command can be stopped and given once more.
Simulated, it is thousands of tests of made-up slices, on models of quiet and of noisy machines.
"""

WRONG, FOUND, MINUTES = 0.01, 0.9, 3.0
"""Targets: of wrong verdicts at most, of drops at least, at most."""
