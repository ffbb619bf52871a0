"""Check the arguments of the functions that create steps against their annotations."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from marin_assets.step.type_check import Check, check_of, described
from marin_assets.step.values import ConfigError

P = ParamSpec("P")
R = TypeVar("R")
BY_STEP = ("expectations", "partitions", "resources", "tags")
"""Arguments that are fields of the step, which names the functions that create their values."""
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def checks_arguments(*but: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: an argument of another type than its annotation raises ConfigError, with what was expected.

    `but`: arguments that the function checks itself, with a better sentence. The annotations are read by the first
    call, so a module that is imported pays nothing.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.cache
        def parts() -> tuple[inspect.Signature, dict[str, Check]]:
            signature = inspect.signature(function)
            namespace = vars(sys.modules[function.__module__])
            checked = [item for item in signature.parameters.values() if item.name not in (*BY_STEP, *but)]
            return signature, {
                item.name: check_of(item.annotation, namespace) for item in checked if item.kind not in VARIABLE
            }

        @functools.wraps(function)
        def checked(*arguments: P.args, **named: P.kwargs) -> R:
            signature, checks = parts()
            try:
                given = signature.bind(*arguments, **named).arguments
            except TypeError:  # of Python, or of Marin's arguments: the function itself reports it
                given = {}
            for name, value in given.items():
                wrong = checks[name](value) if name in checks else None
                if wrong is not None:
                    raise ConfigError(
                        f"{function.__name__} got {name}{wrong.place}={described(wrong.value)}, {wrong.expected}."
                    )
            return function(*arguments, **named)

        return checked

    return decorate
