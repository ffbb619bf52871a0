"""lm-eval's tasks with all their requests, before a model answers one.

lm-eval (0.4.13) builds the requests of a run and sends them to the model in one function. Here it is called twice: a
model that answers nothing ends the first call when all requests are built, and the second call finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from lm_eval import evaluator
from lm_eval.api.model import LM


class PreparedTasks:
    """A task manager whose tasks are loaded once."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._loaded: Any = None

    @property
    def tasks(self) -> list[Any]:
        """lm-eval's tasks, those of groups too."""
        return list(self._loaded["tasks"].values())

    def load(self, names: Any) -> Any:
        if self._loaded is None:
            self._loaded = self._manager.load(names)
        return self._loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


def prepare(lm: Any, manager: Any, arguments: Mapping[str, Any]) -> PreparedTasks:
    """Build the requests of a run on `lm`. `arguments` are those of lm-eval's `simple_evaluate`.

    Pass the result to `simple_evaluate` as the task manager.
    """
    prepared = PreparedTasks(manager)
    with suppress(_Built):
        evaluator.simple_evaluate(_AnswersNothing(lm), task_manager=prepared, **arguments)
    for task in prepared.tasks:
        task.build_all_requests = _keep_requests
    return prepared


def _keep_requests(**arguments: Any) -> None:
    """In the place of a task's method: its requests are built."""


class _Built(Exception):
    """All requests are built."""


class _AnswersNothing(LM):
    """The model as far as requests depend on it: by its chat template."""

    def __init__(self, lm: Any) -> None:
        super().__init__()
        self._lm = lm

    @property
    def tokenizer_name(self) -> str:
        return str(self._lm.tokenizer_name)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        return str(self._lm.chat_template(chat_template))

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return str(self._lm.apply_chat_template(chat_history, add_generation_prompt=add_generation_prompt))

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> NoReturn:
        raise _Built

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> NoReturn:
        raise _Built

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> NoReturn:
        raise _Built
