"""For each field of a key-value load another value than its default. A new field needs one, here only."""

from typing import Any

from sqlstress.experiments.kv.spec import Checkpointing

OTHERS: dict[str, Any] = {
    "read_ratio": 0.9,
    "update_ratio": 0.2,
    "key_space": 50,
    "distribution": "zipfian",
    "key_type": "text",
    "value_size": 16,
    "batch": 2,
    "begin": "deferred",
    "loop": "native",
    "where": True,
    "checkpointing": Checkpointing(mode="restart"),
}
