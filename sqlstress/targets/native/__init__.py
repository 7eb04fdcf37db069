"""The native loop: a C extension that runs a timed window of kv inside a driver's own library.

Files in C, each of one subject; loop.h says what each is for. `extension` finds it, `run` hands it a plan.
How a driver's library and its connections are reached is each target's own business.
"""
