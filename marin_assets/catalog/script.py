"""The steps of a script: it is run up to its call of `executor_main`, which computes nothing then.

`executor_main` checks what it got in both cases, so a mistake is one sentence, however the script is started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from types import ModuleType

from marin_assets.catalog.mistake import sentence_of
from marin_assets.catalog.validation import validate
from marin_assets.step.error_line import line_here, place_of
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName
from marin_resources.types.errors import InvalidInputError

_reading: ContextVar[bool] = ContextVar("reading a script", default=False)


class _Reached(BaseException):
    """`executor_main` was called. No `except Exception` of the script catches this."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.graph = graph


def is_reading() -> bool:
    """Whether `graph_of_script` reads a script now: then its errors go there."""
    return _reading.get()


def register_graph(graph: Graph) -> None:
    """Do nothing, but in a script that `graph_of_script` reads: end it there, with this graph."""
    if _reading.get():
        raise _Reached(graph)


def graph_of_call(steps: object) -> Graph:
    """The graph of the argument of `executor_main`. Raises InvalidInputError with the line of its step, else of the
    call."""
    try:
        return validate(build_graph(_checked_steps(steps)))
    except InvalidInputError as error:
        raise error.at(line_here()) from None


def _checked_steps(steps: object) -> list[Step | InputName]:
    if isinstance(steps, Step | InputName):
        raise ConfigError(f"executor_main got the step {steps.name!r}, expected a list of steps. Write [step].")
    if isinstance(steps, str | Mapping) or not isinstance(steps, Iterable):
        raise ConfigError(f"executor_main got {steps!r:.100}, expected a list of steps.")
    given = list(steps)
    if not given:
        raise ConfigError("executor_main got an empty list, expected at least one step.")
    for number, item in enumerate(given):
        if not isinstance(item, Step | InputName):
            raise ConfigError(f"executor_main got {item!r:.100} as number {number + 1} of its list, expected a step.")
    return given


def graph_of_script(path: str, *, stays_main: bool = False) -> Graph:
    """The steps of the script's first call of `executor_main`, and all that they need.

    What the script does before that call is done; what it prints goes to stderr. `stays_main`: the script is the main
    module of this process from then on, as in `python path`, so that a worker finds its functions by its file. Raises
    ConfigError, with the line, for a script that fails or makes no such call.
    """
    if not os.path.isfile(path):
        raise ConfigError(f"There is no script {path!r}. Give the path of a file that ends in executor_main(…).")
    reading, before = _reading.set(True), sys.modules["__main__"]
    reached: _Reached | None = None
    try:
        with _as_started(path):
            _run_as_main(path)
    except _Reached as found:
        reached = found
        return found.graph
    except (Exception, SystemExit) as error:  # whatever the script raises
        sentence = sentence_of(error) or f"The script {path!r} cannot be read: {type(error).__name__}: {error}"
        raise ConfigError(" ".join(sentence.splitlines())).at(place_of(error)) from error
    finally:
        _reading.reset(reading)
        if reached is None or not stays_main:
            sys.modules["__main__"] = before
    raise ConfigError(f"The script {path!r} makes no call of executor_main. Give one that does.").at(_end_of(path))


def _end_of(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return f"{os.path.abspath(path)}:{max(sum(1 for _ in file), 1)}"


def _run_as_main(path: str) -> None:
    """Like `runpy.run_path`, which takes the module away at the end."""
    main = ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    with open(path, "rb") as file:
        code = compile(file.read(), main.__file__, "exec", dont_inherit=True)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


@contextmanager
def _as_started(path: str) -> Iterator[None]:
    """The arguments and the import path of `python path`. Stdout is for the result of the command."""
    arguments, paths = sys.argv, sys.path
    sys.argv, sys.path = [path], [os.path.dirname(os.path.abspath(path)), *paths]
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.argv, sys.path = arguments, paths
