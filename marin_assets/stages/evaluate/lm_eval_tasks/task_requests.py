"""lm-eval's tasks with all their requests, before a model answers one.

lm-eval (0.4.13) builds the requests of a run and sends them to the model in one function. Here it is called twice: a
model that answers nothing ends the first call when all requests are built, and the second call finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from functools import partial
from typing import Any, NoReturn

from lm_eval import evaluator
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask

from marin_assets.stages.evaluate.lm_eval_config import EvaluationError
from marin_assets.stages.evaluate.tasks.code_eval import code_evaluated, task_with_programs
from marin_resources.types.errors import MarinError

GENERATES = "generate_until"
WRONG = {"loglikelihood": (-1.0, False), "loglikelihood_rolling": -1.0, GENERATES: ""}
"""An answer of a model by the kind of request."""


class PreparedTasks:
    """A task manager whose tasks are loaded once, each by itself: lm-eval refuses a group together with a member."""

    def __init__(self, manager: Any, *, repeats: int | None = None) -> None:
        """`repeats` is the number of answers to each question that is answered with a text; the task's own if None."""
        self._manager, self._repeats = manager, repeats
        self._loaded: dict[str, dict[str, Any]] = {}
        self.members: dict[str, list[str]] = {}
        """Each requested task -> lm-eval's names of it, or of the groups and tasks in it."""

    @property
    def tasks(self) -> list[Any]:
        """lm-eval's tasks, those of groups too."""
        return list(self.by_name.values())

    @property
    def by_name(self) -> dict[str, Any]:
        return self._loaded["tasks"]

    def load(self, names: Any) -> Any:
        """Return lm-eval's tasks of the names. Raises EvaluationError for one that lm-eval cannot load."""
        if not self._loaded:
            parts = {name: self._load(name) for name in names}
            self.members = {name: [*part["groups"], *part["tasks"]] for name, part in parts.items()}
            kinds = ("tasks", "groups", "group_map")
            self._loaded = {kind: {k: v for part in parts.values() for k, v in part[kind].items()} for kind in kinds}
        return self._loaded

    def _load(self, name: str) -> dict[str, Any]:
        try:
            with code_evaluated() if task_with_programs(self._manager, name) else nullcontext():
                loaded: dict[str, Any] = self._manager.load([name])
        except MarinError:
            raise
        except Exception as error:  # of the YAML, of its functions, of a package that they import, of its data
            raise _refused(name, "be loaded (lm-eval's log before this may have more)", error) from error
        for task_name, task in loaded["tasks"].items():
            if self._repeats is not None and task.OUTPUT_TYPE == "generate_until":
                task.set_config("repeats", self._repeats)
            build = task.build_all_requests
            task.build_all_requests = partial(_build, build, task_name)
            if isinstance(task, ConfigurableTask):
                task.build_qa_turn = partial(_turn, task.build_qa_turn)
        return loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


def _build(build: Callable[..., None], name: str, **arguments: Any) -> None:
    """Build the requests of a task. Raises EvaluationError."""
    try:
        build(**arguments)
    except MarinError:
        raise
    except Exception as error:  # of the task's templates and functions
        raise _refused(name, "make its requests", error) from error


def _turn(build: Callable[..., Any], *, c: Any = None, a: Any = None, **of_the_question: Any) -> Any:
    """A question and its answer. lm-eval cannot write a solved example whose true choices are a list of numbers, as
    AGIEval's: here its answer is the first of them."""
    numbers = c and isinstance(a, list) and a and isinstance(a[0], int)
    return build(c=c, a=a[0] if numbers else a, **of_the_question)


def check_scoring(tasks: Sequence[Any]) -> None:
    """Raise EvaluationError for a task that cannot score its first question, with an answer that is wrong.

    Otherwise its mistake, or a package that it lacks, would show after the last answer.
    """
    for task in tasks:
        if not task.instances:
            continue
        first = task.instances[0]
        requests = [copy(request) for request in task.instances if request.doc_id == first.doc_id]
        for request in requests:
            request.resps, request.filtered_resps = [WRONG[request.request_type]] * (request.repeats or 1), {}
        try:
            for steps in getattr(task, "_filters", ()):
                steps.apply(requests)
            scored = {
                metric
                for name in requests[0].filtered_resps
                for metric in task.process_results(first.doc, [request.filtered_resps[name] for request in requests])
            }
        except Exception as error:  # of the task's functions, of a package that they import
            raise _refused(task.config.task, "score an answer", error) from error
        listed = () if task.config.process_results else task.config.metric_list or ()
        # of a text, a metric that is a function has scores by names of its own, such as "pass@1"
        metrics = [entry["metric"] for entry in listed]
        if task.OUTPUT_TYPE == GENERATES:
            metrics = [metric for metric in metrics if not callable(metric)]
        if unknown := [metric for metric in metrics if getattr(metric, "__name__", metric) not in scored]:
            raise EvaluationError(
                f"Task {task.config.task!r} has the metric {unknown[0]!r} in its metric_list, for which lm-eval has no "
                f"score in a task of type {task.OUTPUT_TYPE!r}. Correct its name, or leave it out."
            )
        if not scored:
            raise EvaluationError(f"Task {task.config.task!r} has no metric. Add a metric_list to its YAML.")


def _refused(name: str, verb: str, error: Exception) -> EvaluationError:
    text = " ".join(str(error).split())[:500]
    return EvaluationError(
        f"Task {name!r} cannot {verb}: {type(error).__name__}: {text}. Repair its YAML or its functions, install a "
        "package that it lacks, or leave it out of `tasks`."
    )


def prepare(lm: Any, manager: Any, arguments: Mapping[str, Any], repeats: int | None = None) -> PreparedTasks:
    """Build the requests of a run on `lm`. `arguments` are those of lm-eval's `simple_evaluate`, `repeats` as of
    PreparedTasks.

    Pass the result to `simple_evaluate` as the task manager.
    """
    prepared = PreparedTasks(manager, repeats=repeats)
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
