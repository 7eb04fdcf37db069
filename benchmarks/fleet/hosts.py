"""Workers in one process, each a host: python -m benchmarks.fleet.hosts ADDRESS NAME..."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from sqlstress.cluster import job


def _name() -> str:
    from distributed import get_worker

    return str(get_worker().name)


async def _serve(address: str, names: list[str]) -> None:
    from distributed import Worker

    async def one(name: str) -> Any:
        return await Worker(address, name=name, nthreads=1, dashboard=False)

    workers = [await one(name) for name in names]
    print("joined", flush=True)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    job.host_name = job.machine = _name
    asyncio.run(_serve(sys.argv[1], sys.argv[2:]))
