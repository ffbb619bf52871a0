"""The config of an evaluation with Inspect."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marin_assets.inference.engine import Endpoint, Engine, require_engine
from marin_assets.inference.own_python import NoPythonError, own_python
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.types.errors import MarinError


class InspectError(MarinError, ValueError):
    """A task of Inspect is unknown, cannot be loaded, has failed, or has no score. The message names it."""


@dataclass(frozen=True)
class InspectTask:
    """A task of Inspect, with its arguments."""

    name: str
    """"sums.py@sums" of a file, "sums.py" for all of it, or "inspect_evals/gsm8k" of an installed package."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the task's function."""
    alias: str | None = None
    """Label of its scores; None: the name that Inspect has for it. One task with two arguments needs one."""


@dataclass(frozen=True, kw_only=True)
class InspectConfig:
    tasks: tuple[str | InspectTask, ...] = versioned(())
    """Names of tasks, or tasks with arguments."""
    model_path: str | None = None
    """Folder of a Hugging Face export; None: an endpoint's model, which no step here has made."""
    tasks_path: str | None = None
    """Folder of the files of tasks."""
    tasks_digest: str | None = versioned(None)
    """Digest of this folder, by `digest_of`; None: an output of a step, whose version is in this one."""
    output_path: str = THIS_OUTPUT_PATH
    max_eval_instances: int | None = versioned(None)
    """Most samples of a task; all if None."""
    epochs: int | None = versioned(None)
    """Answers to each sample; the task's own number if None."""
    generation: Mapping[str, Any] = versioned({})
    """Settings of generation by Inspect's names, such as temperature, max_tokens. They prevail over the task's."""
    as_text: bool = versioned(False)
    """Send the texts of the messages alone, without a chat template: for a model that has none."""
    engine: Engine | Endpoint | None = None
    """Engine whose server has the model: JAX if None."""
    use_hub: bool = False
    """Let tasks load their data from the Hugging Face hub."""
    save_every_s: float = 1.0
    """Least interval between two saves of finished samples, for an attempt that resumes."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check_inspect, name)

    def needs_here(self) -> tuple[str, ...]:
        return ("Inspect",)

    def missing_here(self) -> Iterator[tuple[str, str]]:
        """Each need that this machine does not meet, and the remedy."""
        try:
            inspect_python()
        except NoPythonError as error:
            yield "Inspect, which this machine does not have", str(error)


def inspect_python() -> str:
    """The Python of Inspect's environment: that of MARIN_INSPECT_PYTHON, else of .venv-inspect in the checkout.

    Raises NoPythonError.
    """
    return own_python("Inspect", "inspect", ("inspect_ai", "openai"), packages=("inspect-ai", "openai"))


def inspect_tasks(config: InspectConfig) -> list[InspectTask]:
    return [InspectTask(task) if isinstance(task, str) else task for task in config.tasks]


def check_inspect(config: InspectConfig) -> None:
    """Raise InspectError for values that no evaluation can have, EngineError for what is no engine."""
    tasks = inspect_tasks(config)
    if not tasks:
        raise InspectError("InspectConfig has no tasks, expected one at least, such as 'sums.py@sums'.")
    for task in tasks:
        if not task.name.strip() or os.path.isabs(task.name) or ".." in Path(task.name).parts:
            raise InspectError(
                f"InspectConfig has the task {task.name!r}, expected the name of one in the folder of tasks, such as "
                "'sums.py@sums', or of a package, such as 'inspect_evals/gsm8k'."
            )
        if task.name.partition("@")[0].endswith(".py") and config.tasks_path is None:
            raise InspectError(f"InspectConfig has the task {task.name!r} and no folder of tasks. Set tasks_path.")
    labels = Counter(task.alias or task.name for task in tasks)
    if twice := [label for label, count in labels.items() if count > 1]:
        raise InspectError(
            f"InspectConfig has the task {twice[0]!r} twice, expected each once. Leave one out, or give it an alias: "
            "InspectTask('sums.py@sums', {'digits': 3}, 'sums_3')."
        )
    for name in ("max_eval_instances", "epochs"):
        number = getattr(config, name)
        if number is not None and number < 1:
            raise InspectError(f"InspectConfig has {name}={number!r}, expected None or a number from 1.")
    if config.engine is not None:
        require_engine(config.engine)
    if config.model_path is None and not isinstance(config.engine, Endpoint):
        raise InspectError(
            "InspectConfig has no model_path and no Endpoint as engine, expected one of them. Set model_path."
        )


def digest_of(folder: str) -> str:
    """The digest of the files in a local folder, but for hidden ones and compiled code.

    Raises InspectError if it is no folder.
    """
    if not os.path.isdir(folder):
        raise InspectError(
            f"The folder of tasks is {folder!r}, which is no folder here. Pass the folder of their files."
        )
    digest = hashlib.sha256()
    for file in sorted(Path(folder).rglob("*")):
        name = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in name.parts):
            content = file.read_bytes()
            digest.update(f"{name.as_posix()}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
