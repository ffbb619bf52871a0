from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_held_out_set
from marin_assets.stages.evaluate.lm_eval import EvaluationError, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.filesystems.filesystem import filesystem_of

QUESTIONS = 40
pytestmark = pytest.mark.long  # imports and compiling: 7 s of CPU. The quickstart evaluates in `make test`


def evaluate(output_path: Path, model_path: str, **fields: Any) -> dict[str, Any]:
    return evaluate_with_lm_eval(
        unwrap_versioned_value(LmEvalConfig(model_path=model_path, output_path=str(output_path), **fields))
    )


@pytest.fixture(scope="module")
def held_out_path(documents_path: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("held_out"))
    config = HeldOutConfig(
        documents_path=documents_path,
        output_path=path,
        validation_fraction=0.2,
        questions=QUESTIONS,
        context_characters=80,
        continuation_characters=40,
        max_documents=30,
    )
    make_held_out_set(unwrap_versioned_value(config))
    return path


@pytest.fixture(scope="module")
def scored(
    model_path: str, held_out_path: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    path = tmp_path_factory.mktemp("scores")
    result = evaluate(path, model_path, held_out_path=held_out_path)
    return path, result, [json.loads(line) for line in (path / "samples.jsonl").read_text().splitlines()]


Scored = tuple[Path, dict[str, Any], list[dict[str, Any]]]


def test_the_accuracies_are_those_of_the_samples(scored: Scored) -> None:
    _, result, samples = scored
    questions = [row for row in samples if row["task"] == "held_out_questions"]
    assert result["questions"] == len(questions) == QUESTIONS
    assert result["acc"] == pytest.approx(sum(row["pick"] == row["target"] for row in questions) / QUESTIONS)
    right = sum(row["pick_mutual_info"] == row["target"] for row in questions)
    assert result["acc_mutual_info"] == pytest.approx(right / QUESTIONS)
    by_length = [
        max(range(4), key=lambda i: row["loglikelihoods"][i] / len(row["choices"][i])) == row["target"]
        for row in questions
    ]
    assert result["acc_norm"] == pytest.approx(sum(by_length) / QUESTIONS)


def test_the_standard_error_is_that_of_a_mean_and_the_bounds_follow_from_it(scored: Scored) -> None:
    _, result, _ = scored
    for metric in ("acc", "acc_norm", "acc_mutual_info"):
        p = result[metric]
        assert result[f"{metric}_stderr"] == pytest.approx(math.sqrt(p * (1 - p) / (QUESTIONS - 1)))
        assert result[f"{metric}_lower95"] == pytest.approx(p - 1.96 * result[f"{metric}_stderr"])
        assert result[f"{metric}_upper95"] == pytest.approx(p + 1.96 * result[f"{metric}_stderr"])
    assert result["chance"] == 0.25


def test_bits_per_byte_are_the_loglikelihoods_over_the_bytes(scored: Scored, held_out_path: str) -> None:
    _, result, samples = scored
    nats = sum(row["loglikelihood"] for row in samples if row["task"] == "held_out_texts")
    texts = [json.loads(line)["text"] for line in Path(held_out_path, "texts.jsonl").read_text().splitlines()]
    assert result["texts"] == len(texts)
    assert result["bits_per_byte"] == pytest.approx(-nats / math.log(2) / sum(len(text.encode()) for text in texts))


def test_the_result_has_only_numbers_and_the_plot_exists(scored: Scored) -> None:
    path, result, _ = scored
    assert all(type(n) in (int, float) for scores in result["scores"].values() for n in scores.values())
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["plots"] == ["plots/scores.png"]
    assert (path / "plots/scores.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_has_a_row_for_each_metric_with_its_error_shots_and_version(scored: Scored) -> None:
    path, result, _ = scored
    rows = {(row["task"], row["metric"]): row for row in csv.DictReader((path / "scores.csv").open())}
    accuracy = rows["held_out_questions", "acc"]
    assert float(accuracy["value"]) == result["acc"]
    assert float(accuracy["error"]) == result["acc_stderr"]
    assert (accuracy["n"], accuracy["shots"], accuracy["version"]) == (str(QUESTIONS), "0", "1.0")
    assert accuracy["higher_is_better"] == "True"
    assert rows["held_out_texts", "bits_per_byte"]["higher_is_better"] == "False"
    own = json.loads((path / "results.json").read_text())
    assert own["results"]["held_out_questions"]["acc,none"] == result["acc"]
    assert {"versions", "n-shot", "configs", "config", "n-samples"} <= own.keys()


def test_the_same_evaluation_from_a_bucket_is_the_same_bytes(
    scored: Scored, model_path: str, held_out_path: str, gcs_prefix: str
) -> None:
    fs, root = filesystem_of(gcs_prefix)
    fs.put(model_path, f"{root}/hf", recursive=True)
    fs.put(held_out_path, f"{root}/held_out", recursive=True)
    fields: dict[str, Any] = {"held_out_path": f"{gcs_prefix}/held_out", "output_path": f"{gcs_prefix}/scores"}
    config = LmEvalConfig(model_path=f"{gcs_prefix}/hf", **fields)
    result = evaluate_with_lm_eval(unwrap_versioned_value(config))
    assert result == scored[1]
    for name in ("results.json", "scores.csv", "samples.jsonl", "samples.html", "plots/scores.png"):
        assert fs.cat_file(f"{root}/scores/{name}") == (scored[0] / name).read_bytes()


def test_own_tasks_run_and_the_environment_is_restored(model_path: str, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    (tasks / "rows.jsonl").write_text(
        "".join(json.dumps({"q": f"{n} + {n} is", "a": str(2 * n)}) + "\n" for n in range(6))
    )
    (tasks / "sums.yaml").write_text(
        f"""
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {tasks}/rows.jsonl}}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
generation_kwargs: {{max_gen_toks: 4, until: ["."]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
    )
    before = dict(os.environ)
    result = evaluate(
        tmp_path / "out", model_path, include_path=str(tasks), tasks=("sums",), max_eval_instances=5, num_fewshot=1
    )
    assert dict(os.environ) == before
    assert result["scores"]["sums"]["instances"] == 5
    assert 0 <= result["scores"]["sums"]["exact_match"] <= 1
    rows = [json.loads(line) for line in (tmp_path / "out/samples.jsonl").read_text().splitlines()]
    assert len(rows) == 5
    assert all(" is" in row["context"] and isinstance(row["generated"], str) for row in rows)


def test_an_unknown_task_is_an_error(model_path: str, held_out_path: str, tmp_path: Path) -> None:
    with pytest.raises(
        EvaluationError, match=r"The task is 'mmlu', expected one of 'held_out_questions', 'held_out_texts'\."
    ):
        evaluate(tmp_path, model_path, held_out_path=held_out_path, tasks=("mmlu",))
    with pytest.raises(EvaluationError, match=r"and there are no names. Pass held_out_path"):
        evaluate(tmp_path, model_path)


def test_a_missing_model_is_an_error(held_out_path: str, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"has no 'config.json', expected the folder of a Hugging Face export"):
        evaluate(tmp_path, str(tmp_path / "nothing"), held_out_path=held_out_path)


OFFLINE = """
import socket, sys
def refuse(*address, **more): raise AssertionError(f"asked the network for {address}")
socket.getaddrinfo = socket.create_connection = refuse
connect = socket.socket.connect
socket.socket.connect = lambda s, address: connect(s, address) if s.family == socket.AF_UNIX else refuse(address)
from marin_assets.stages.evaluate.lm_eval import LmEvalConfig, evaluate_with_lm_eval
assert not {"jax", "lm_eval", "numpy", "datasets", "levanter"} & set(sys.modules), "importing the stage is not free"
from marin_assets.step.values import unwrap_versioned_value
model, held_out, out = sys.argv[1:]
config = LmEvalConfig(model_path=model, held_out_path=held_out, output_path=out, max_eval_instances=8)
evaluate_with_lm_eval(unwrap_versioned_value(config))
assert "torch" not in sys.modules
import os
assert not os.path.exists(os.environ["HF_HOME"]), sorted(os.listdir(os.environ["HF_HOME"]))
"""


@pytest.mark.long
def test_a_fresh_process_needs_neither_torch_nor_network_nor_a_cache_of_its_own(
    model_path: str, held_out_path: str, tmp_path: Path
) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")} | {
        "HF_HOME": str(tmp_path / "hf_home")
    }
    command = [sys.executable, "-c", OFFLINE, model_path, held_out_path, str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "out/results.json").exists()
