"""Sentences for a researcher who comes from Marin: a name of Marin's that is imported, an argument of Marin's.

    from marin_assets import ExecutorStep      ImportError: … here it is Step(…)
    Step(…, pip_dependency_groups=["cpu"])     ConfigError: … write extras=(…)

The table is `marins_names.py`, which is imported when a name or an argument is not known, and never before.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from marin_assets.step.values import ConfigError
from marin_resources.types.errors import InvalidInputError
from marin_resources.types.near_names import near_names

T = TypeVar("T")


class MarinsNameError(InvalidInputError, ImportError):
    """A name was imported from a module that lacks it: one sentence with the name here, or with the nearest ones."""


def missing_name(module: str, name: str) -> Exception:
    """Return the error of a package's `__getattr__` for a name that it lacks; with a sentence, if the name is Marin's,
    or like one of the package's.

    It is an AttributeError, so that hasattr() is False. Only `from module import name`, which would replace an
    AttributeError by a text of Python's own, gets an ImportError. Called by `__getattr__` itself.
    """
    from marin_assets.step.marins_names import HOMES, IMPORTS  # late: every worker imports this module

    home = next((home for home, names in HOMES.items() if name in names and home != module), None)
    if home is not None:
        sentence = f"{module} has no name {name!r}, it is one of {home}. Write `from {home} import {name}`."
    elif name in IMPORTS:
        sentence = f"{module} has no name {name!r}, which is Marin's. Here it is {IMPORTS[name]}."
    elif not name.startswith("_") and (near := near_names(name, sys.modules[module].__all__)):
        sentence = f"{module} has no name {name!r}. Did you mean {' or '.join(map(repr, near))}?"
    else:
        return AttributeError(f"Module {module!r} has no attribute {name!r}.")
    # Python looks for each imported name of a package before it binds them
    is_import = sys._getframe(2).f_code.co_filename == "<frozen importlib._bootstrap>"
    return MarinsNameError(sentence) if is_import else AttributeError(sentence)


def takes_marins_arguments(target: T) -> T:
    """Decorate a function, or a class, that has entries in ARGUMENTS: an argument of Marin's raises ConfigError.

    An argument whose value requests what happens here anyway is left out instead: `use_default_validation=False`.
    """
    is_class = isinstance(target, type)
    function = cast("Callable[..., Any]", target.__init__ if is_class else target)  # type: ignore[misc]
    name = cast(Any, target).__name__
    code = function.__code__
    own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        if not own.issuperset(named):
            named = _without_marins(name, named, own)
        return function(*arguments, **named)

    if not is_class:
        return cast(T, checked)
    target.__init__ = checked  # type: ignore[misc]
    return target


def _without_marins(function: str, named: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """The arguments without those of Marin's that change nothing. Raises ConfigError for one that would."""
    from marin_assets.step.marins_names import ARGUMENTS  # late: most scripts pass none

    kept = {}
    for argument, value in named.items():
        marins = None if argument in own else ARGUMENTS[function].get(argument)
        if marins is None:
            kept[argument] = value
        elif not marins.is_default(value):
            raise ConfigError(f"{function} has no argument {argument}, which is Marin's. Here it is {marins.here}.")
    return kept
