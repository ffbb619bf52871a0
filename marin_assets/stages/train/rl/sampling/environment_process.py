"""The environments of a training in a light process of their own, so that no class of a user's can stop the training.

A call that raises, hangs or returns no such value is an EnvironmentFault, with a reason to count it by.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.lessons import Lesson, open_environment
from marin_resources.ray_tpu.worker.object_process import CallError, LostProcessError, ObjectProcess
from marin_resources.wire.config_json import decode, encode

MOST_OF_A_NOTE = 300
MOST_CHARACTERS = 2**20
"""Length of a prompt, a reply, or an example as JSON. Each of its rollouts is a row with all of it."""

log = logging.getLogger(__name__)


class EnvironmentFault(Exception):
    """A method of an environment failed."""

    def __init__(self, reason: str, note: str) -> None:
        super().__init__(f"{reason}: {note}")
        # a lone surrogate, which tables cannot hold, is a "?"
        self.reason, self.note = reason, note[:MOST_OF_A_NOTE].encode(errors="replace").decode()


class EnvironmentProcess:
    """Open it with a `with` block."""

    def __init__(self, lessons: dict[str, Lesson], *, timeout_s: float) -> None:
        self._lessons, self._timeout_s = json.dumps(encode(lessons)), timeout_s
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Raises TrainError for a class that is no environment."""
        try:
            self._start()
        except CallError as error:
            raise TrainError(str(error)) from error
        return self

    def __exit__(self, *ended: Any) -> None:
        self._stack.__exit__(*ended)

    def stops(self, lesson: str) -> tuple[str, ...]:
        return tuple(self._call(lesson, "stops"))

    def example(self, lesson: str, seed: int, index: int) -> Any:
        return self._call(lesson, "example", seed, index)

    def prompt(self, lesson: str, example: Any) -> Any:
        """A text, or messages. Raises EnvironmentFault."""
        return self._call(lesson, "prompt", example)

    def reward(self, lesson: str, example: Any, text: str) -> float:
        """A finite number. Raises EnvironmentFault."""
        return float(self._call(lesson, "reward", example, text))

    def reply(self, lesson: str, example: Any, text: str) -> str | None:
        answer: str | None = self._call(lesson, "reply", example, text)
        return answer

    def _call(self, lesson: str, method: str, *arguments: Any) -> Any:
        try:
            fault, value = self._process.call("call", lesson, method, *arguments, timeout_s=self._timeout_s)
        except TimeoutError as error:
            self._restart(f"{lesson}.{method} did not end within {self._timeout_s:g} s")
            raise EnvironmentFault(f"{method}_hung", f"not ended within {self._timeout_s:g} s") from error
        except LostProcessError as error:
            self._restart(f"{lesson}.{method} ended its process")
            raise EnvironmentFault(f"{method}_died", str(error)) from error
        if fault:
            raise EnvironmentFault(f"{method}_{fault}", value)
        return value

    def _start(self) -> None:
        # sets of texts have the same order in each process, and after a resumption
        env = {"PYTHONHASHSEED": "0"}
        process = ObjectProcess(open_environments, (self._lessons,), on_line=log.info, env=env)
        self._process = self._stack.enter_context(process)

    def _restart(self, why: str) -> None:
        log.warning("the process of the environments is started again: %s", why)
        error = RuntimeError(why)  # it is killed, as it does not answer
        self._stack.__exit__(RuntimeError, error, None)
        self._start()


@contextmanager
def open_environments(lessons: str) -> Iterator[Environments]:
    """All environments, in their process. `lessons` is JSON."""
    opened = decode(json.loads(lessons))
    yield Environments({name: open_environment(name, lesson) for name, lesson in opened.items()})


class Environments:
    """Calls methods, and looks at what they return."""

    def __init__(self, environments: dict[str, Any]) -> None:
        self._environments = environments

    def call(self, lesson: str, method: str, *arguments: Any) -> tuple[str, Any]:
        """Return what is wrong, empty if nothing is, and the value or a note about it."""
        environment = self._environments[lesson]
        if method == "stops":
            return "", list(getattr(environment, "stops", ()))
        if method == "reply" and not hasattr(environment, "reply"):
            return "", None
        try:
            fault, value = _checked(method, getattr(environment, method)(*arguments))
        except Exception as error:  # a user's code
            fault, value = "raised", _shown(error)
        return fault, value[:MOST_OF_A_NOTE] if fault else value


def _shown(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its text is made by a user's code too
        return type(error).__name__


def _checked(method: str, value: Any) -> tuple[str, Any]:
    if method == "reward":
        try:
            number = float(value)
        except (TypeError, ValueError):
            return "no_number", f"the reward is {value!r}"
        return ("", number) if math.isfinite(number) else ("not_finite", f"the reward is {number}")
    if method == "reply" and not (value is None or isinstance(value, str)):
        return "no_text", f"the reply is {value!r}"
    if method == "prompt" and not (isinstance(value, str) or _is_messages(value)):
        return "no_text", f"the prompt is {value!r}"
    if method == "example":
        try:
            text = json.dumps(value, allow_nan=False)
            value = json.loads(text)
            encode(value, "the example")
        except (TypeError, ValueError, RecursionError) as error:  # an EncodeError is a ValueError
            return "not_json", f"the example is {value!r:.100}: {error}"
    else:
        text = json.dumps(value, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return "no_text", f"the {method} has a lone surrogate: {error}"
    if len(text) > MOST_CHARACTERS:
        return "too_large", f"the {method} has {len(text):,} characters, expected at most {MOST_CHARACTERS:,}"
    return "", value


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and all(isinstance(part, str) for part in turn.values()) for turn in value)
    )
