"""Every task of every suite runs, from rows in the schema of its data, with what it needs of packages and programs."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from random_llama import write_random_llama
from suite_rows import tasks_in, write_suite_mirror

from marin_assets.documents import Document
from marin_assets.stages.evaluate import suites
from marin_assets.stages.evaluate.lm_eval import HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import OLMES
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import TASKS as OWN_TASKS
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.values import unwrap_versioned_value

pytestmark = [
    pytest.mark.long,  # 260 tasks
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.filterwarnings("ignore:pkg_resources is deprecated"),  # of lm-eval's leaderboard_ifeval
]

SUITES = {name: suite for name, suite in vars(suites).items() if name.isupper()}
TASKS = (*dict.fromkeys(task for suite in SUITES.values() for task in suite), EvalTask("mbpp"))
"""With the other task of programs that are run."""
QUESTIONS = 2
WINDOW = 2048
"""IFEval generates 1280 tokens."""


@pytest.fixture(scope="module")
def members() -> dict[str, list[dict[str, Any]]]:
    """Each task or group of a suite -> the settings of the tasks in it."""
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(OWN_TASKS / OLMES), include_defaults=True)
    return {name: list(tasks_in(manager, name)) for name in {task.name for task in TASKS}}


@pytest.fixture(scope="module")
def mirror(members: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mirror")
    write_suite_mirror(folder, [task for tasks in members.values() for task in tasks])
    return folder


@pytest.fixture(scope="module")
def model_path(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that continues a token with the next one of its vocabulary, and ends an answer at each 16th: an answer of
    random weights has no end before its limit."""
    from safetensors.numpy import load_file, save_file

    folder = tmp_path_factory.mktemp("hf")
    write_random_llama(folder, [document.text for document in corpus[:200]], WINDOW)
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            weights[name] *= 1e-3
    embedding = weights["model.embed_tokens.weight"]
    embedding /= (embedding**2).mean(axis=1, keepdims=True) ** 0.5
    weights["lm_head.weight"] = embedding.take(range(-1, len(embedding) - 1), axis=0)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": list(range(1, len(embedding), 16))}))
    return str(folder)


def labels_of(task: EvalTask, members: list[dict[str, Any]]) -> set[str]:
    names = [member["task"] for member in members]
    if names == [task.name]:
        return {task.label}
    return {f"{task.alias}/{name}" if task.alias else name for name in names}


def test_every_task_of_every_suite_has_a_score(
    model_path: str, members: dict[str, list[dict[str, Any]]], mirror: Path, tmp_path: Path
) -> None:
    config = LmEvalConfig(
        model_path=model_path,
        output_path=str(tmp_path),
        tasks=TASKS,
        mirror_path=str(mirror),
        max_eval_instances=QUESTIONS,
        options=HarnessOptions(confirm_run_unsafe_code=True),
    )
    scores = evaluate_with_lm_eval(unwrap_versioned_value(config))["scores"]
    rows = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    labels = set().union(*(labels_of(task, members[task.name]) for task in TASKS))
    assert len(labels) > 200
    assert labels <= scores.keys()
    for label in labels:
        numbers = [value for key, value in scores[label].items() if key not in ("instances", "chance")]
        assert numbers, label
        assert all(map(math.isfinite, numbers)), label
        assert sum(row["task"] == label for row in rows) == QUESTIONS, label
    with (tmp_path / "scores.csv").open() as file:
        assert labels <= {row["task"] for row in csv.DictReader(file)}
