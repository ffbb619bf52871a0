"""The packages of experiments: each file is an experiment, whose function `steps()` returns its steps.

They are `marin_assets.experiments`, or those that MARIN_EXPERIMENTS names. They are listed, not imported, so an
experiment that fails to import takes nothing else away.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from marin_assets.catalog.error_line import line_of
from marin_assets.catalog.validation import validate
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError
from marin_resources.configuration.code_packages import experiment_packages

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiments:
    steps: Mapping[str, tuple[Step, ...]]
    """Experiment name -> its steps, in the order of file names."""
    left_out: Mapping[str, str]
    """Experiment name -> why it is left out, in one sentence."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Experiment name -> the first line of its file's docstring, for those that have one."""


def load_experiments() -> Experiments:
    """Every experiment that imports, and whose steps do not clash with those of the experiments before it."""
    loaded: dict[str, tuple[Step, ...]] = {}
    left_out: dict[str, str] = {}
    modules: dict[str, str] = {}
    for module in sorted(_modules(), key=_name_of):
        name = _name_of(module)
        if modules.setdefault(name, module) != module:
            twice = ConfigError(f"{modules[name]} has the same file name. Rename one of the two files.")
            _leave_out(module, twice, left_out)
            continue
        try:
            loaded[name] = _load(module)
        except Exception as error:  # one broken file must not take the others away
            _leave_out(name, error, left_out)
    if not _clash(loaded):
        return Experiments(loaded, left_out, _titles(loaded, modules))
    agreed: dict[str, tuple[Step, ...]] = {}
    for name, steps in loaded.items():  # one by one, to find the one that clashes
        if clash := _clash({**agreed, name: steps}):
            _leave_out(name, clash, left_out)
        else:
            agreed[name] = steps
    return Experiments(agreed, dict(sorted(left_out.items())), _titles(agreed, modules))


def _titles(names: Iterable[str], modules: Mapping[str, str]) -> dict[str, str]:
    docs = {name: (sys.modules[modules[name]].__doc__ or "").strip() for name in names}
    return {name: doc.splitlines()[0] for name, doc in docs.items() if doc}


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
    return sorted({_name_of(module) for module in _modules()})


def _modules() -> list[str]:
    """The modules of the packages. A package that cannot be imported raises SettingError."""
    return [
        f"{package}.{module.name}"
        for package in experiment_packages()
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ]


def _name_of(module: str) -> str:
    return module.rpartition(".")[2]


def _load(module_name: str) -> tuple[Step, ...]:
    module = importlib.import_module(module_name)
    if not callable(getattr(module, "steps", None)):
        raise ConfigError(f"{module.__file__!r} has no function steps(). Add one that returns the experiment's steps.")
    steps = module.steps()
    if not isinstance(steps, Iterable):
        raise ConfigError(f"steps() in {module.__file__!r} returned {steps!r}, expected a list of steps.")
    return tuple(steps)


def experiment_of_script(graph: Graph) -> str | None:
    """The experiment that the running script is: a file of the packages whose `steps()` are those of `graph`.

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
    specs = [importlib.util.find_spec(package) for package in experiment_packages()]
    return [os.path.realpath(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
