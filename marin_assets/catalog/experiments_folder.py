"""The packages of experiments: each file is an experiment, whose function `steps()` returns its steps.

They are `marin_assets.experiments`, or those that MARIN_EXPERIMENTS names. Files are listed first, and imported one by
one, so an experiment that fails to import takes nothing else away.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from marin_assets.catalog.experiment_files import experiment_files, folders_of_files
from marin_assets.catalog.mistake import sentence_of
from marin_assets.catalog.validation import validate
from marin_assets.step.error_line import place_of
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiments:
    steps: Mapping[str, tuple[Step, ...]]
    """Experiment name -> its steps, in the order of file names."""
    left_out: Mapping[str, str]
    """Experiment name -> why it is left out, in one sentence."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Experiment name -> the first line of its file's docstring, for those that have one."""


def load_experiments(not_logged: str | None = None) -> Experiments:
    """Every experiment that imports, and whose steps do not clash with those of the experiments before it.

    A warning is logged for each one that is left out, but for `not_logged`: its caller reports it.
    """
    loaded = _load_all()
    for name, sentence in loaded.left_out.items():
        if name != not_logged:
            log.warning(sentence)
    return loaded


def _load_all() -> Experiments:
    loaded: dict[str, tuple[Step, ...]] = {}
    left_out: dict[str, str] = {}
    modules: dict[str, str] = {}
    for file in experiment_files():
        name, module = file.name, file.module
        if modules.setdefault(name, module) != module:
            twice = ConfigError(f"{modules[name]} has the same file name. Rename one of the two files.")
            left_out[module] = _why_left_out(module, twice)
            continue
        try:
            loaded[name] = _load(module)
        except Exception as error:  # one broken file must not take the others away
            left_out[name] = _why_left_out(name, error)
    if not _clash(loaded):
        return Experiments(loaded, left_out, _titles(loaded, modules))
    agreed: dict[str, tuple[Step, ...]] = {}
    for name, steps in loaded.items():  # one by one, to find the one that clashes
        if clash := _clash({**agreed, name: steps}):
            left_out[name] = _why_left_out(name, clash)
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


def _why_left_out(name: str, error: Exception) -> str:
    place = place_of(error)
    why = sentence_of(error) or f"{type(error).__name__}: {error}"
    return f"{place and f'{place}: '}Experiment {name!r} is left out: {' '.join(why.split())}"


def experiment_names() -> list[str]:
    """The names of the experiments, of which none is imported."""
    return sorted({file.name for file in experiment_files()})


def _load(module_name: str) -> tuple[Step, ...]:
    module = importlib.import_module(module_name)
    function = getattr(module, "steps", None)
    if not callable(function):
        raise ConfigError(
            f"{module.__file__!r} has no function steps(). Add one that returns the experiment's steps."
        ).at(f"{module.__file__}:1")
    code = getattr(function, "__code__", None)
    place = f"{module.__file__}:{code.co_firstlineno if code else 1}"
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        sentence = f"steps() cannot be called without arguments: {error}. Give each a default."
        raise ConfigError(sentence).at(place) from None
    returned = function()
    try:
        return _checked(returned)
    except ConfigError as error:
        raise error.at(place) from None


def _checked(returned: object) -> tuple[Step, ...]:
    """The steps that `steps()` has returned. Raises ConfigError for what is no list of steps."""
    if returned is None:
        raise ConfigError("steps() returned None, expected a list of steps. Add a return.")
    if isinstance(returned, Step | InputName):
        raise ConfigError(f"steps() returned the step {returned.name!r}, expected a list of steps. Return [step].")
    if isinstance(returned, str | Mapping) or not isinstance(returned, Iterable):
        raise ConfigError(f"steps() returned {returned!r:.100}, expected a list of steps.")
    steps = tuple(returned)
    for number, step in enumerate(steps, 1):
        if not isinstance(step, Step):
            raise ConfigError(f"steps() returned {step!r:.100} as number {number} of its list, expected a step.")
    return steps


def experiment_of_script(graph: Graph) -> str | None:
    """The experiment that the running script is: a file of the packages whose `steps()` are those of `graph`.

    None for every other script, as the code location does not have its steps.
    """
    main = sys.modules["__main__"]
    file, steps = getattr(main, "__file__", None), getattr(main, "steps", None)
    if file is None or not callable(steps) or os.path.dirname(os.path.realpath(file)) not in folders_of_files():
        return None
    try:
        own = build_graph(list(steps()))
    except Exception:  # of the experiment: the code location leaves it out, and logs why
        return None
    same = {node.name: node.version.hash for node in own} == {node.name: node.version.hash for node in graph}
    return Path(file).stem if same else None
