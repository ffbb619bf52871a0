"""Former paths of classes that a dagster.yaml names: the file in a DAGSTER_HOME is a copy, which may be older.

Dagster imports the module of the file and reads the class from it. Both names are mapped to today's.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

PACKAGE, FIXES = "marin_resources.orchestrator", "marin_resources.dagster_fixes"
MODULES = {
    "compute_logs": "compute_logs",
    "compute_logs.manager": "compute_logs.manager",
    "databases": "databases",
    "event_log": "event_log",
    "kubernetes_run_launcher": "kubernetes_run_launcher",
    "patient_postgres": "postgres",
    "run_launcher": "run_launcher",
    "users": "run_attribution",
    "webserver": "webserver",  # the command `marin-webserver` of an older installation of this checkout
}
CLASSES = {
    "KeptSqliteEventLogStorage": "PooledSqliteEventLogStorage",
    "OnceCreatedRunStorage": "LockedInitRunStorage",
    "OnceCreatedScheduleStorage": "LockedInitScheduleStorage",
    "PatientRunStorage": "RetryingRunStorage",
    "PatientEventLogStorage": "RetryingEventLogStorage",
    "PatientScheduleStorage": "RetryingScheduleStorage",
    "UserRunCoordinator": "AttributingRunCoordinator",
}


class _FormerModule(ModuleType):
    def __init__(self, name: str, target: str) -> None:
        super().__init__(name)
        self._target = target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._target), CLASSES.get(name, name))


def register_former_class_paths() -> None:
    """Let imports of the former modules return the classes of today's. Nothing is imported until one is used."""
    for former, module in MODULES.items():
        name = f"{PACKAGE}.{former}"
        sys.modules.setdefault(name, _FormerModule(name, f"{FIXES}.{module}"))
