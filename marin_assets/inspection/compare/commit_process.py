"""The process of `commit_side.py`: print the steps of the experiments in a folder, as JSON after a line.

It runs as text (`python -c`) in the code of another commit, so it imports only what every commit has.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

BEGIN = "=== steps of the commit ==="
"""Line before the JSON: an experiment may print."""


def read_steps(folder: str, experiment: str, package: str) -> dict[str, Any]:
    """The steps of one experiment of the package in a folder, or of all, by name; and why experiments are left out."""
    from marin_assets.step.graph import build_graph

    importlib.import_module(package).__path__ = [folder]
    modules = dict(sorted(_modules_in(folder, package)))
    steps: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    for name, module in modules.items():
        if experiment not in ("", name):
            continue
        try:
            for node in build_graph(list(importlib.import_module(module).steps())):
                steps.setdefault(node.name, _to_json(node))
        except Exception as error:  # one broken experiment does not take the others away
            left_out[name] = f"{type(error).__name__}: {error}"
    return {"names": list(modules), "steps": list(steps.values()), "left_out": left_out}


def _modules_in(folder: str, package: str) -> Iterator[tuple[str, str]]:
    """(name of an experiment, its module) of the folder and of the folders in it."""
    for module in pkgutil.iter_modules([folder]):
        path = f"{package}.{module.name}"
        if module.ispkg:
            yield from _modules_in(f"{folder}/{module.name}", path)
        else:
            yield module.name, path


def _to_json(node: Any) -> dict[str, Any]:
    function = node.step.fn
    return {
        "name": node.name,
        "version": node.version.as_dict(),
        "path": node.step.override_output_path or node.version.path,
        "function": f"{function.__module__}:{function.__qualname__}",
    }


if __name__ == "__main__":
    read = read_steps(*sys.argv[1:])
    sys.stdout.write(f"\n{BEGIN}\n{json.dumps(read)}\n")
