"""`experiments/<name>-<hash>.json` below the prefix: the steps of an experiment and their paths, in Marin's form."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import UTC, datetime
from typing import Any

from marin_assets.step.graph import Graph, Node
from marin_resources.drift.provenance import provenance
from marin_resources.storage.files import write_json
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join

FORMAT_VERSION = 1
RECORDS = "experiments"
"""Folder below the prefix."""


def write_experiment(name: str, graph: Graph, store: Store, description: str | None) -> str:
    """Write the record (Marin's ExecutorInfo); returns its path."""
    steps = [_step_info(node, store) for node in graph]
    digest = hashlib.md5(json.dumps(steps, sort_keys=True).encode()).hexdigest()[:6]
    path = join(store.prefix, RECORDS, f"{name}-{digest}.json")
    origin = provenance()
    write_json(
        path,
        {
            "format_version": FORMAT_VERSION,
            "worker_id": f"{os.uname().nodename}-{os.getpid()}",
            "git_commit": origin["git"]["commit"],
            "caller_path": os.path.abspath(sys.argv[0]),
            "created_date": datetime.now(UTC).isoformat(),
            "user": origin["user"],
            "prefix": store.prefix,
            "description": description,
            "steps": steps,
        },
    )
    return path


def _step_info(node: Node, store: Store) -> dict[str, Any]:
    return {
        "name": node.name,
        "fn_name": f"{node.step.fn.__module__}:{node.step.fn.__qualname__}",
        "version": node.version.as_dict(),
        "dependencies": [store.locate(dependency.output) for dependency in node.dependencies],
        "output_path": store.locate(node.output),
    }
