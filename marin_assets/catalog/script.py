"""The steps of a script: it is run up to its call of `executor_main`, which computes nothing then."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from types import ModuleType

from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName

_reading: ContextVar[bool] = ContextVar("reading a script", default=False)


class _Reached(BaseException):
    """`executor_main` was called. No `except Exception` of the script catches this."""

    def __init__(self, steps: Sequence[Step | InputName]) -> None:
        super().__init__(steps)
        self.steps = steps


def register_steps(steps: Sequence[Step | InputName]) -> None:
    """Do nothing, but in a script that `steps_of_script` reads: end it there, with these steps."""
    if _reading.get():
        raise _Reached(steps)


def steps_of_script(path: str, *, stays_main: bool = False) -> list[Step | InputName]:
    """The steps of the script's first call of `executor_main`.

    What the script does before that call is done; what it prints goes to stderr. `stays_main`: the script is the main
    module of this process from then on, as in `python path`, so that a worker finds its functions by its file. Raises
    ConfigError for a script that fails or makes no such call.
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
        return list(found.steps)
    except (Exception, SystemExit) as error:  # whatever the script raises
        raise ConfigError(f"The script {path!r} cannot be read: {type(error).__name__}: {error}") from error
    finally:
        _reading.reset(reading)
        if reached is None or not stays_main:
            sys.modules["__main__"] = before
    raise ConfigError(f"The script {path!r} makes no call of executor_main. Give one that does.")


def _run_as_main(path: str) -> None:
    """Like `runpy.run_path`, which takes the module away at the end."""
    main = ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    with open(path, "rb") as file:
        code = compile(file.read(), main.__file__, "exec")
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
