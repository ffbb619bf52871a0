"""The submitter's code on this node: below the job's working directory, if that has its own copy.

In:  what the note holds about the code (`cluster/code/code.py`).   Out: the import path, the task with local scripts.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from marin_resources.ray_tpu.cluster.settings import CodeMode
from marin_resources.wire.task import Task


def import_code(code: Mapping[str, Any]) -> None:
    """Put the folders of the job's code first on the import path, in the submitter's order."""
    if code.get("root") is None:
        return
    folders = [os.path.normpath(os.path.join(os.getcwd(), relative)) for relative in code["import_paths"]]
    sys.path[:] = [*folders, *(path for path in sys.path if path not in folders)]
    importlib.invalidate_caches()


def has_vanished(code: Mapping[str, Any]) -> bool:
    """Whether the job's shipped working directory, in which this process started, was removed from this node."""
    if code["mode"] != CodeMode.SHIP:
        return False
    try:
        return not os.path.isdir(os.getcwd())
    except FileNotFoundError:
        return True


def with_local_scripts(task: Task, code: Mapping[str, Any]) -> Task:
    """Return the task with references to scripts of the submitter's working directory moved to this process's."""
    root = code.get("root")
    if root is None:
        return task
    return dataclasses.replace(task, fn=_moved(task.fn, root), config=_moved_in(task.config, root))


def _moved(reference: str, root: str) -> str:
    """Return "/root/x/exp.py:fn" below this process's working directory, any other reference unchanged."""
    below = reference.removeprefix(f"{root.rstrip('/')}/")
    is_script = reference.rpartition(":")[0].endswith(".py")
    return os.path.join(os.getcwd(), below) if is_script and below != reference else reference


def _moved_in(value: Any, root: str) -> Any:
    """Do the same for the classes that an encoded config names."""
    if isinstance(value, list):
        return [_moved_in(item, root) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved_in(item, root) for key, item in value.items()}
    return {**moved, **{tag: _moved(value[tag], root) for tag in ("$dataclass", "$enum") if tag in value}}
