"""fleet: what a fleet takes, and what is lost when hosts die.

    python -m benchmarks fleet --output benchmarks/results/fleet.md

One machine plays all hosts: each worker of the cluster says that it is a machine of its own, so that they
measure at once, which no real fleet does on one machine. They measure the target that stores nothing: it is
the fleet's own work that is looked at. Hosts killed: one worker's process in each run, with SIGKILL, at a
random moment; every other host's report must come back whole. Reports simulated: a real one, with other rates
and another cost of a sync.
"""
