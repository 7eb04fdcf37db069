"""What is saved: the Report, its Runs and Trials, and the fingerprint of where they were measured."""

from sqlstress.report.ab import AbTest, Arm, Look
from sqlstress.report.crash import Crash, Kills
from sqlstress.report.document import FORMAT_VERSION, Report, from_json, read, to_json
from sqlstress.report.environment import Environment, FileSystem, Host, SqliteBuild, SyncCost, Warning
from sqlstress.report.power_loss import PowerCuts, PowerLoss
from sqlstress.report.results import Check, Latency, Run, Trial, Verdict, WorkerResult
from sqlstress.report.saving import write_atomically
from sqlstress.report.space import Portion, Space, TreeSpace

__all__ = [
    "FORMAT_VERSION",
    "AbTest",
    "Arm",
    "Check",
    "Crash",
    "Environment",
    "FileSystem",
    "Host",
    "Kills",
    "Latency",
    "Look",
    "Portion",
    "PowerCuts",
    "PowerLoss",
    "Report",
    "Run",
    "Space",
    "SqliteBuild",
    "SyncCost",
    "TreeSpace",
    "Trial",
    "Verdict",
    "Warning",
    "WorkerResult",
    "from_json",
    "read",
    "to_json",
    "write_atomically",
]
