"""The folder `experiments/`: each file is an experiment, whose function `steps()` returns its steps."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from marin_assets.catalog.error_line import line_of
from marin_assets.catalog.validation import validate
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError

FOLDER = "marin_assets.experiments"
"""The folder's name: experiments are found, not imported, so one that fails to import takes nothing else away."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiments:
    steps: Mapping[str, tuple[Step, ...]]
    """Experiment name -> its steps, in the order of file names."""
    left_out: Mapping[str, str]
    """Experiment name -> why it is left out, in one sentence."""


def load_experiments() -> Experiments:
    """Every experiment that imports, and whose steps do not clash with those of the experiments before it."""
    loaded: dict[str, tuple[Step, ...]] = {}
    left_out: dict[str, str] = {}
    for name in experiment_names():
        try:
            loaded[name] = _load(name)
        except Exception as error:  # one broken file must not take the others away
            _leave_out(name, error, left_out)
    if not _clash(loaded):
        return Experiments(loaded, left_out)
    agreed: dict[str, tuple[Step, ...]] = {}
    for name, steps in loaded.items():  # one by one, to find the one that clashes
        if clash := _clash({**agreed, name: steps}):
            _leave_out(name, clash, left_out)
        else:
            agreed[name] = steps
    return Experiments(agreed, dict(sorted(left_out.items())))


def _clash(loaded: Mapping[str, tuple[Step, ...]]) -> Exception | None:
    """The error of the steps of all loaded experiments together, None if they agree."""
    try:
        validate(build_graph([step for steps in loaded.values() for step in steps]))
    except Exception as error:  # of an experiment's own making
        return error
    return None


def _leave_out(name: str, error: Exception, left_out: dict[str, str]) -> None:
    line = line_of(error.__traceback__)
    left_out[name] = f"Experiment {name!r} is left out: {type(error).__name__}: {error}{line and f' ({line})'}"
    log.warning(left_out[name])


def experiment_names() -> list[str]:
    """The names of the experiments, of which none is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(FOLDER).__path__))


def _load(name: str) -> tuple[Step, ...]:
    module = importlib.import_module(f"{FOLDER}.{name}")
    if not callable(getattr(module, "steps", None)):
        raise ConfigError(f"{module.__file__!r} has no function steps(). Add one that returns the experiment's steps.")
    steps = module.steps()
    if not isinstance(steps, Iterable):
        raise ConfigError(f"steps() in {module.__file__!r} returned {steps!r}, expected a list of steps.")
    return tuple(steps)


def experiment_of_script(graph: Graph) -> str | None:
    """The experiment that the running script is: a file of the folder whose `steps()` are those of `graph`.

    None for every other script, as the code location does not have its steps.
    """
    main = sys.modules["__main__"]
    file, steps = getattr(main, "__file__", None), getattr(main, "steps", None)
    if file is None or not callable(steps) or os.path.dirname(os.path.realpath(file)) not in _folders():
        return None
    try:
        own = build_graph(list(steps()))
    except Exception:  # of the experiment: the code location leaves it out, and logs why
        return None
    same = {node.name: node.version.hash for node in own} == {node.name: node.version.hash for node in graph}
    return Path(file).stem if same else None


def _folders() -> list[str]:
    spec = importlib.util.find_spec(FOLDER)
    return [os.path.realpath(folder) for folder in spec.submodule_search_locations or ()] if spec is not None else []
