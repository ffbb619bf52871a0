"""Checks of a step's function and config when the step is created: can a worker import it, does it take this config?

What a stage would refuse hours later is refused then.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, TypeVar

from marin_assets.step.type_check import described, mismatch_in
from marin_assets.step.values import ConfigError, require_shallow, without_versions
from marin_resources.types.errors import MarinError

C = TypeVar("C")
SHOWN_CHARACTERS = 200
"""The most characters of a function's arguments in a sentence."""


def check_config(config: C, check: Callable[[C], Any], step: str) -> None:
    """Call `check`, which looks at values alone, with the config without versioned(). Paths in it may be placeholders.

    Raises ConfigError for a value of another type than its annotation, and the MarinError of `check` with the step's
    name.
    """
    require_types(config, step)
    try:
        check(without_versions(config))
    except MarinError as error:
        raise type(error)(f"Step {step!r}: {error}") from error


def require_function(fn: Any, step: str) -> None:
    """Raise ConfigError for what is no function, and for one that a worker cannot import by its name."""
    if type(fn).__module__.partition(".")[0] == "ray":
        raise ConfigError(
            f"Step {step!r} has a remote function of Ray, expected the plain function: the step is submitted to Ray "
            "itself. Leave out @ray.remote, and state resources= of the step."
        )
    if isinstance(fn, functools.partial):
        raise ConfigError(
            f"Step {step!r} has a partial of {_name(fn.func)}, which no worker can import, and whose arguments would "
            "not enter the version. Put them into fields of the config."
        )
    if not callable(fn):
        raise ConfigError(f"Step {step!r} has fn={fn!r}, expected a function that takes the config.")
    if _name(fn) == "<lambda>":
        raise ConfigError(
            f"Step {step!r} has a lambda, which no worker can import. Define it at the top level of a module or of the "
            "script, as a function."
        )


def require_config_fits(fn: Callable[..., Any], config: Any, step: str) -> None:
    """Raise ConfigError if `fn` does not take one argument, or takes one of another dataclass."""
    # one function has many steps
    signature, takes_one = _call_of(fn) if isinstance(fn, types.FunctionType) else _call_of.__wrapped__(fn)
    if signature is None:
        return
    if not takes_one:
        arguments = str(signature) if len(str(signature)) <= SHOWN_CHARACTERS else "(…)"
        raise ConfigError(
            f"Step {step!r} has the function {_name(fn)}{arguments}, expected one that takes the config alone. Put "
            "other arguments into the config."
        )
    expected = next(iter(signature.parameters.values())).annotation
    if isinstance(expected, str):
        expected = getattr(fn, "__globals__", {}).get(expected)
    if isinstance(expected, type) and dataclasses.is_dataclass(expected) and not isinstance(config, expected):
        raise ConfigError(
            f"Step {step!r} has a config of {type(config).__name__}, and its function {_name(fn)} takes "
            f"{expected.__name__}. Pass one of that."
        )


@functools.lru_cache(maxsize=1000)
def _call_of(fn: Callable[..., Any]) -> tuple[inspect.Signature | None, bool]:
    """The signature of a function, None of one in C, and whether it can be called with one argument."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None, True
    try:
        signature.bind(None)
    except TypeError:
        return signature, False
    return signature, True


def require_types(config: Any, step: str) -> None:
    """Raise ConfigError for a field whose value is of another type than its annotation (`type_check.py`)."""
    try:
        wrong = mismatch_in(config)
    except RecursionError:
        require_shallow(config, f"Step {step!r} config")
        raise
    if wrong is not None:
        annotation = f"{wrong.annotation} " if wrong.annotation not in wrong.expected else ""
        raise ConfigError(
            f"Step {step!r} config{wrong.place} is {described(wrong.value)}, {wrong.expected}, as its annotation "
            f"{annotation}in {wrong.owner} states."
        )


def _name(fn: Any) -> str:
    return str(getattr(fn, "__name__", repr(fn)))
