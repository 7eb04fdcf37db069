"""The way in. Workers import this module again, so it imports nothing but what it needs to look away."""

import sys

if __name__ == "__main__":
    from benchmarks.gate import real, simulated

    words = sys.argv[1:]
    sys.exit(simulated.main(words[1:]) if words[:1] == ["simulate"] else real.main(words))
