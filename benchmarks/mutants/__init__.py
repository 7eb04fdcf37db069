"""mutants: which changes of the code its tests notice, and which they don't.

    python -m pip install -e '.[test,mutants]'
    python -m benchmarks mutants --survivors

In a copy of the tree mutmut changes one thing of a module after the other: an operator, a number, an
argument, a text. The tests that modules.toml names must fail each time. Annotations and what stands outside
of functions are left as they are. mutmut forks, so this runs on Linux and macOS. Exit codes: 0 tried, whether
or not any survived; 1 mutmut failed; 2 usage.
"""
