"""A real cluster on 127.0.0.1: a scheduler and workers, each a process that is ended by its own id."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from tests.engine.processes import environment

PATIENCE_S = 300.0
"""A machine that needs longer than this for anything here is broken, not slow."""
PLAN = """\
repeat = 2
duration = "100ms"
warmup = "20ms"
[[case]]
workload = "kv"
driver = "dry"
concurrency = 1
rate = 200
key-space = 100
"""
"""The load has a rate, because all hosts are the same machine and share its processors."""
LONG = PLAN.replace('"100ms"', '"60s"')


class LocalCluster:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, security: Sequence[str] = ()) -> None:
        self.folder = folder
        self._security = security
        self._processes: list[subprocess.Popen[bytes]] = []
        self._scheduler_file = folder / "scheduler.json"

    def __enter__(self) -> Self:
        protocol = ("--protocol", "tls") if self._security else ()
        place = (
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(self._scheduler_file),
        )
        self._start("scheduler", *place, *protocol, *self._security)
        self.wait_for(self._has_begun)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            with suppress(psutil.Error):
                parent = psutil.Process(process.pid)
                for child in (*parent.children(recursive=True), parent):
                    with suppress(psutil.Error):
                        child.kill()
            process.wait(PATIENCE_S)

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(json.loads(self._scheduler_file.read_text(encoding="utf-8"))["address"])

    def worker(self, name: str, preload: Path, nanny: bool = False) -> psutil.Process:
        """Start `dask worker`, and wait until it has joined; return its process."""
        process = self.begin(name, preload, nanny)
        self.wait_for(lambda: b"Registered to" in (self.folder / f"{name}.log").read_bytes())
        return psutil.Process(process.pid)

    def begin(self, name: str, preload: Path, nanny: bool = False) -> subprocess.Popen[bytes]:
        """Start `dask worker`."""
        return self._start(
            *("worker", self.address, "--name", name, "--nworkers", "1", "--nthreads", "1", "--no-dashboard"),
            *("--nanny" if nanny else "--no-nanny", "--preload", str(preload)),
            *("--local-directory", str(self.folder / f"{name}-dask"), *self._security),
            log=self.folder / f"{name}.log",
        )

    def command(
        self, plan: str, folder: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start `sqlstress fleet` with these environment variables."""
        file = self.folder / "plan.toml"
        file.write_text(plan, encoding="utf-8")
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "sqlstress", "fleet", str(file), "--scheduler", self.address),
                *("--folder", str(folder)),
            ],
            cwd=self.folder, env={**environment(), **(variables or {})}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; fail if it never does."""
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, "it did not come to pass"
            time.sleep(0.1)

    def _has_begun(self) -> bool:
        """Return whether the scheduler has written its address: its file exists before it has content."""
        try:
            return bool(self.address)
        except (OSError, ValueError):
            return False

    @property
    def scheduler(self) -> psutil.Process:
        """The scheduler's process."""
        return psutil.Process(self._processes[0].pid)

    def measuring(self) -> list[psutil.Process]:
        """Return the guards of the measurements on hosts, even if they have a new parent."""
        jobs = []
        for process in psutil.process_iter(["cmdline"]):
            with suppress(psutil.Error):
                is_job = "sqlstress.cluster.job" in (process.info["cmdline"] or ())
                if is_job and Path(process.cwd()) == self.folder:
                    jobs.append(process)
        return jobs

    def _start(self, *arguments: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        with (log or self.folder / f"{arguments[0]}.log").open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env={**environment(), "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"},
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process


def certificates(folder: Path) -> tuple[str, str]:
    """Make a self-signed certificate; return its file and that of its key."""
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    options = ("-days", "2", "-subj", "/CN=sqlstress-test", "-keyout", key, "-out", cert)
    subprocess.run(["openssl", *command, *options], check=True, capture_output=True, timeout=PATIENCE_S)
    return cert, key


def tls_variables(cert: str, key: str) -> dict[str, str]:
    """Return environment variables by which Dask uses the certificate as client and as authority."""
    prefix = "DASK_DISTRIBUTED__COMM__TLS__"
    return {f"{prefix}CA_FILE": cert, f"{prefix}CLIENT__CERT": cert, f"{prefix}CLIENT__KEY": key}
