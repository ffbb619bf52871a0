"""The submitter's code as it lies on this node: below the job's working directory, if it has one of its own.

In:  what the note says of the code (`cluster/code.py`).   Out: the import path, and the task with its scripts' names.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from marin_resources.wire.task import Task


def import_code(code: Mapping[str, Any]) -> None:
    """Import from the job's code before all else, in the submitter's order."""
    if code.get("root") is None:
        return
    folders = [os.path.normpath(os.path.join(os.getcwd(), relative)) for relative in code["import_paths"]]
    sys.path[:] = [*folders, *(path for path in sys.path if path not in folders)]
    importlib.invalidate_caches()


def task_here(task: Task, code: Mapping[str, Any]) -> Task:
    """The task, with scripts of the submitter's working directory as they are found in this one."""
    root = code.get("root")
    if root is None:
        return task
    return dataclasses.replace(task, fn=_moved(task.fn, root), config=_moved_in(task.config, root))


def _moved(reference: str, root: str) -> str:
    """ "/root/x/exp.py:fn" below this process's working directory; any other reference as it is."""
    below = reference.removeprefix(f"{root.rstrip('/')}/")
    is_script = reference.rpartition(":")[0].endswith(".py")
    return os.path.join(os.getcwd(), below) if is_script and below != reference else reference


def _moved_in(value: Any, root: str) -> Any:
    """The same for the classes that an encoded config names."""
    if isinstance(value, list):
        return [_moved_in(item, root) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved_in(item, root) for key, item in value.items()}
    return {**moved, **{tag: _moved(value[tag], root) for tag in ("$dataclass", "$enum") if tag in value}}
