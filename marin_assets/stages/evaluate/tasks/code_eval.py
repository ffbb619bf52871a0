"""The metric "code_eval" of HumanEval and MBPP: programs of a model are run with tests, in a sandbox.

Tasks load it by name from Hugging Face's `evaluate`, which downloads its code from the hub and runs programs in a
process of its own with the rights of the user. Tasks loaded within `code_evaluated` get this metric in its place, of
the same interface.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from marin_assets.documents.scores import pass_at
from marin_assets.stages.evaluate.lm_eval_config import EvaluationError
from marin_resources.host.sandbox import failure_of, require_sandbox

NAME = "code_eval"
KEPT_PROGRAMS = 50_000


class CodeEval:
    """Hugging Face's metric, as far as tasks use it."""

    def compute(
        self, *, references: Sequence[str], predictions: Sequence[Sequence[str]], k: Sequence[int] = (1,), **_: Any
    ) -> tuple[dict[str, float], dict[int, list[tuple[int, dict[str, Any]]]]]:
        """Run each candidate program with its tests.

        references: the tests of each problem; predictions: its candidates. Returns the means over the problems as
        "pass@<k>", and the outcome of each candidate by problem. Raises EvaluationError for more than the candidates as
        k, SandboxError on a machine without a sandbox.
        """
        fewest = min(map(len, predictions), default=0)
        if max(k) > fewest:
            raise EvaluationError(
                f"pass@{max(k)} needs as many answers to a question, and one has {fewest}. Set the task's `repeats` to "
                f"{max(k)}."
            )
        programs = [
            (problem, f"{candidate}\n{tests}")
            for problem, (tests, candidates) in enumerate(zip(references, predictions, strict=True))
            for candidate in candidates
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            failures = list(pool.map(_failure_of, (program for _, program in programs)))
        outcomes: dict[int, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for (problem, _program), failure in zip(programs, failures, strict=True):
            number = len(outcomes[problem])
            tried = {"task_id": problem, "passed": failure is None, "result": failure or "passed"}
            outcomes[problem].append((number, {**tried, "completion_id": number}))
        passed = [sum(outcome["passed"] for _, outcome in of) for of in outcomes.values()]
        means = {
            f"pass@{most}": sum(pass_at(most, len(of), right) for of, right in zip(predictions, passed, strict=True))
            / len(passed)
            for most in k
        }
        return means, dict(outcomes)


@lru_cache(KEPT_PROGRAMS)
def _failure_of(program: str) -> str | None:
    """As failure_of; a program of several answers, or that several scores are of, runs once."""
    return failure_of(program)


def check_programs(manager: Any, names: Iterable[str], *, confirmed: bool) -> None:
    """Raise EvaluationError for a task that runs programs without a confirmation, SandboxError for one on a machine
    without a sandbox."""
    unsafe = next(filter(None, (task_with_programs(manager, name) for name in names)), None)
    if unsafe and not confirmed:
        raise EvaluationError(
            f"Task {unsafe!r} runs the programs that the model writes. Pass "
            "HarnessOptions(confirm_run_unsafe_code=True), which runs them in a sandbox, or leave the task out."
        )
    if unsafe:
        require_sandbox()


def task_with_programs(manager: Any, name: str) -> str | None:
    """The first task of a task, group or tag of lm-eval whose YAML has `unsafe_code`."""
    if (entry := manager.task_index.get(name)) is None:
        return None
    config = entry.cfg or {"task": sorted(entry.tags)}  # a tag has no YAML
    if config.get("unsafe_code"):
        return name
    members = config["task"] if isinstance(config.get("task"), list) else []
    names = [member if isinstance(member, str) else member.get("task") for member in members]
    unsafe = (task_with_programs(manager, member) for member in names if isinstance(member, str))
    return next(filter(None, unsafe), None)


@contextmanager
def code_evaluated() -> Iterator[None]:
    """Give tasks that load "code_eval" this metric while the block runs."""
    import evaluate  # 3 s to import

    of_the_hub = evaluate.load

    def load(path: str, *arguments: Any, **settings: Any) -> Any:
        return CodeEval() if path == NAME else of_the_hub(path, *arguments, **settings)

    evaluate.load = load
    try:
        yield
    finally:
        evaluate.load = of_the_hub
