"""After its import by the server, each fork fails, as if the system allowed no more processes."""

import os


def _refuse() -> int:
    raise BlockingIOError(11, "Resource temporarily unavailable")


vars(os)["fork"] = _refuse
