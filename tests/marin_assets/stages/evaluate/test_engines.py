"""One evaluation on each engine, and by lm-eval's own command: the same scores.

torch and vLLM have environments of their own. `make test-vllm` makes them, and runs these tests.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_llama import write_llama

from marin_assets.inference.engine import JAX, TORCH, VLLM, Engine, EngineError, check_engine, python_of
from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_held_out_set
from marin_assets.stages.evaluate.lm_eval import EvaluationError, HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import write_held_out_tasks
from marin_assets.stages.evaluate.scores import TEXTS
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value

WINDOW = 128
QUESTIONS = 40
TOLERANCE = 2e-4
"""Nats of a log-likelihood, relative: float32, summed in another order."""
ENGINES = {
    "jax": JAX,
    "torch": TORCH,
    "vllm": replace(VLLM, options=("--enforce-eager", "--max-num-seqs", "16")),
}
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

Scored = tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def export(documents_path: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama that vLLM can serve, with a tokenizer of ours, which begins a text with BOS."""
    folder = tmp_path_factory.mktemp("export")
    config = TrainTokenizerConfig(documents_path=documents_path, output_path=str(folder), vocab_size=512)
    train_tokenizer(unwrap_versioned_value(config))
    return write_llama(folder, 512, WINDOW, head_dim=32)


@pytest.fixture(scope="module")
def held_out(documents_path: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("held_out"))
    config = HeldOutConfig(
        documents_path=documents_path,
        output_path=path,
        validation_fraction=0.2,
        questions=QUESTIONS,
        context_characters=320,  # more than the window, of most
        continuation_characters=40,
        max_documents=40,
    )
    make_held_out_set(unwrap_versioned_value(config))
    return path


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task that generates."""
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"q": f"{n} plus {n} is", "a": str(2 * n)} for n in range(12)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "sums.yaml").write_text(
        f"""
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
output_type: generate_until
test_split: test
num_fewshot: 2
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
generation_kwargs: {{max_gen_toks: 12, until: ["z"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 2.0}}
"""
    )
    return folder


@pytest.fixture(scope="module")
def scores_on(
    export: str, held_out: str, tasks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Engine | None], Scored]:
    def evaluate(engine: Engine | None) -> Scored:
        path = tmp_path_factory.mktemp("scores")
        config = LmEvalConfig(
            model_path=export,
            held_out_path=held_out,
            include_path=str(tasks),
            tasks=("held_out_questions", "held_out_texts", "sums"),
            output_path=str(path),
            engine=engine,
        )
        result = evaluate_with_lm_eval(unwrap_versioned_value(config))
        rows = [json.loads(line) for line in (path / "samples.jsonl").read_text().splitlines()]
        by_task = {task: [row for row in rows if row["task"] == task] for task in result["scores"]}
        cut = {name: float(count) for name, count in result["cut_contexts_by_task"].items()}
        assert cut["held_out_questions"] > QUESTIONS / 2
        assert "shortened_texts" not in result
        return {**result["scores"], "cut contexts": cut}, by_task

    return evaluate


@pytest.fixture(scope="module")
def here(scores_on: Callable[[Engine | None], Scored]) -> Scored:
    """The scores of the JAX model in this process."""
    return scores_on(None)


@pytest.mark.parametrize("kind", ENGINES)
def test_every_engine_gives_the_same_scores(
    kind: str, here: Scored, scores_on: Callable[[Engine | None], Scored], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    _require(ENGINES[kind])
    scores, samples = scores_on(ENGINES[kind])
    expected_scores, expected = here
    assert samples.keys() == expected.keys()
    for task, rows in expected.items():
        for row, found in zip(rows, samples[task], strict=True):
            assert found.get("generated") == row.get("generated")
            for name in {"loglikelihoods", "unconditional_loglikelihoods", "loglikelihood"} & row.keys():
                assert found[name] == pytest.approx(row[name], rel=TOLERANCE), (task, name)
    for task, numbers in expected_scores.items():
        assert scores[task] == pytest.approx(numbers, rel=TOLERANCE)


@pytest.mark.parametrize("kind", ENGINES)
def test_every_engine_samples_different_answers_that_a_second_evaluation_has_too(
    kind: str, export: str, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    _require(ENGINES[kind])
    drawn = {"do_sample": True, "temperature": 1.5, "max_gen_toks": 5}

    def answers(name: str, **settings: float) -> list[list[str]]:
        config = LmEvalConfig(
            model_path=export,
            include_path=str(tasks),
            tasks=("sums",),
            output_path=str(tmp_path / name),
            engine=ENGINES[kind],
            options=HarnessOptions(gen_kwargs={**drawn, **settings}, repeats=4),
        )
        evaluate_with_lm_eval(unwrap_versioned_value(config))
        rows = [json.loads(line) for line in (tmp_path / name / "samples.jsonl").read_text().splitlines()]
        return [[answer["generated"] for answer in row["answers"]] for row in rows]

    first = answers("first", top_k=40, top_p=0.9)
    assert all(len(set(of)) > 1 for of in first)
    assert answers("again", top_k=40, top_p=0.9) == first
    assert all(len(set(of)) == 1 for of in answers("likeliest", top_k=1))
    if kind == "vllm":
        assert answers("penalty", top_k=40, top_p=0.9, repetition_penalty=2.0) != first
    else:
        with pytest.raises(EvaluationError, match=rf"repetition_penalty=2.0, which the engine '{kind}' does not have"):
            answers("penalty", repetition_penalty=2.0)


def test_the_scores_are_those_of_lm_evals_own_command(
    here: Scored, export: str, held_out: str, tasks: Path, tmp_path: Path
) -> None:
    """But for whole texts: the command puts BOS before a text that the tokenizer has begun with one already."""
    _require(TORCH)
    python = python_of(unwrap_versioned_value(TORCH))
    if subprocess.run([python, "-c", "import lm_eval"], capture_output=True).returncode != 0:
        pytest.skip(f"{python} lacks lm-eval, which the environment of vLLM has: make test-vllm")
    folder = tmp_path / "tasks"
    shutil.copytree(tasks, folder)
    write_held_out_tasks(held_out, str(folder))
    command = [
        *(python, "-m", "lm_eval", "--model", "hf", "--device", "cpu", "--batch_size", "8"),
        *("--model_args", f"pretrained={export},dtype=float32,max_length={WINDOW}"),
        *("--tasks", "held_out_questions,sums", "--include_path", str(folder), "--output_path", str(tmp_path / "out")),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "HF_HOME": str(tmp_path / "hf"),
            "PATH": "/usr/bin:/bin",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (written,) = (tmp_path / "out").rglob("results_*.json")
    by_hand = json.loads(written.read_text())
    for task, numbers in here[0].items():
        if task in (TEXTS, "cut contexts"):
            continue
        for metric, value in by_hand["results"][task].items():
            name, comma, _ = metric.partition(",")
            if comma and isinstance(value, float):
                assert numbers[name] == pytest.approx(value, rel=1e-9), (task, metric)
    assert by_hand["n-shot"]["sums"] == 2


def _require(engine: Engine) -> None:
    try:
        check_engine(unwrap_versioned_value(engine))
    except EngineError as error:
        pytest.skip(str(error))
