from __future__ import annotations

import dataclasses
import json
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.checkpoints import last_checkpoint_step
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.train_lm import LlamaSpec, OptimizerSpec, TrainError, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import decode, encode

STEPS = 12
TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)

RUN = """
import json, sys
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

def refuse(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "socket.gethostbyname"):
        print("NETWORK", event, arguments, flush=True)

sys.addaudithook(refuse)
print("RESULT", json.dumps(train_lm(decode(json.loads(sys.argv[1])))))
"""


def config_of(inputs: Any, output: Path, **changes: Any) -> TrainLmConfig:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": TINY,
        "num_train_steps": STEPS,
        "train_batch_size": 4,
        "steps_per_eval": 5,
        "max_eval_batches": 2,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


@pytest.fixture(scope="module")
def trained(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("trained")
    return output, train_lm(config_of(inputs, output))


pytestmark = pytest.mark.filterwarnings("default")  # warnings of Levanter and its dependencies


@pytest.mark.long
def test_the_untrained_model_knows_nothing_and_the_trained_one_more(trained: tuple[Path, dict[str, Any]]) -> None:
    _, result = trained
    assert abs(result["loss_start"] - math.log(512)) < 0.2
    assert result["loss_end"] < result["loss_start"] - 0.05
    assert result["loss_ratio"] == result["loss_end"] / result["loss_start"]
    assert result["train_loss_end"] < result["loss_start"]


@pytest.mark.long
def test_the_result_is_plain_and_counts_what_was_done(trained: tuple[Path, dict[str, Any]]) -> None:
    output, result = trained
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["steps"], result["tokens_seen"]) == (STEPS, STEPS * 4 * 32)
    # embedding, attention (q, k, v, o), mlp, three norms
    assert result["parameters"] == 512 * 32 + 4 * 32 * 32 + 3 * 32 * 64 + 3 * 32
    assert result["tokens_per_second"] > 0
    assert result["resumed_from_step"] is None
    assert [(output / plot).exists() for plot in result["plots"]] == [True, True]
    losses = [row["train/loss"] for row in read_metrics(str(output / "metrics.jsonl")) if "train/loss" in row]
    assert result["loss_curve"] == [round(loss, 4) for loss in losses]  # fewer than 40: each one


@pytest.mark.long
def test_the_metrics_have_one_row_a_step(trained: tuple[Path, dict[str, Any]]) -> None:
    output, result = trained
    rows = read_metrics(str(output / "metrics.jsonl"))
    assert [row["step"] for row in rows] == [-1, *range(2, STEPS)]
    assert [row["step"] for row in rows if "eval/loss" in row] == [-1, 5, 10, STEPS - 1]
    assert all(row["train/loss"] > 0 for row in rows[1:])
    assert {"eval/most/loss", "eval/few/loss"} <= set(rows[0])
    assert rows[-1]["eval/loss"] == result["loss_end"]


@pytest.mark.long
def test_the_export_is_a_hugging_face_folder_with_its_tokenizer(
    trained: tuple[Path, dict[str, Any]], inputs: Any
) -> None:
    from safetensors import safe_open

    folder = trained[0] / trained[1]["model_path"]
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("llama", ["LlamaForCausalLM"])
    assert (config["vocab_size"], config["head_dim"], config["eos_token_id"]) == (512, 32, 1)
    original = Path(inputs.tokenizer_path) / "tokenizer.json"
    assert json.loads((folder / "tokenizer.json").read_text()) == json.loads(original.read_text())
    with safe_open(str(folder / "model.safetensors"), "np") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118  (not a dict)
    assert sum(math.prod(shape) for shape in shapes) == trained[1]["parameters"]


@pytest.mark.long
def test_the_export_says_of_generation_where_it_stops_and_nothing_else(trained: tuple[Path, dict[str, Any]]) -> None:
    from transformers import GenerationConfig, PretrainedConfig

    folder = trained[0] / trained[1]["model_path"]
    config = json.loads((folder / "config.json").read_text())
    assert not set(config) & {*PretrainedConfig._get_global_generation_defaults(), "decoder_start_token_id"}
    assert json.loads((folder / "generation_config.json").read_text()) == {"eos_token_id": [1], "bos_token_id": 0}
    generation = GenerationConfig.from_pretrained(str(folder))
    assert (generation.eos_token_id, generation.begin_suppress_tokens) == ([1], None)


@pytest.mark.long
def test_the_process_keeps_its_log_handlers(trained: tuple[Path, dict[str, Any]]) -> None:
    assert not [
        h
        for h in logging.getLogger().handlers
        if isinstance(h, logging.FileHandler) and "marin-train" in h.baseFilename
    ]


@pytest.mark.long
def test_a_finished_run_trains_no_step_again_and_keeps_its_numbers(
    trained: tuple[Path, dict[str, Any]], inputs: Any, tmp_path: Path
) -> None:
    shutil.copytree(trained[0], tmp_path / "again")
    (tmp_path / "again/hf/model.safetensors").unlink()  # as if killed during the export
    result = train_lm(config_of(inputs, tmp_path / "again"))
    assert result == {**trained[1], "resumed_from_step": STEPS - 1}
    assert weights_of(tmp_path / "again") == weights_of(trained[0])
    assert read_metrics(str(tmp_path / "again/metrics.jsonl")) == read_metrics(str(trained[0] / "metrics.jsonl"))


@pytest.mark.long
def test_the_log_of_a_resumed_run_repeats_nothing(
    trained: tuple[Path, dict[str, Any]], inputs: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    shutil.copytree(trained[0], tmp_path / "again")
    (tmp_path / "again/hf/model.safetensors").unlink()
    train_lm(config_of(inputs, tmp_path / "again"))
    messages = Counter(record.getMessage() for record in caplog.records)
    assert any(message.startswith("Loading checkpoint from ") for message in messages)
    assert any(re.match(r"training \d+ parameters on \d+ devices", message) for message in messages)
    assert [message for message, times in messages.items() if times > 3] == []


@pytest.mark.long
def test_a_killed_run_resumes_from_its_checkpoint_to_the_same_weights_without_network(
    inputs: Any, tmp_path: Path
) -> None:
    changes = {"num_train_steps": 300, "steps_per_checkpoint": 20, "steps_per_eval": 20}
    straight = run(config_of(inputs, tmp_path / "straight", **changes))
    killed = config_of(inputs, tmp_path / "killed", **changes)
    with subprocess.Popen([sys.executable, "-c", RUN, json.dumps(encode(killed))], env=environment()) as process:
        deadline = time.monotonic() + 120
        while last_checkpoint_step(f"{killed.output_path}/checkpoints") is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.kill()
    rows_of_the_killed = len(read_metrics(f"{killed.output_path}/metrics.jsonl"))
    assert rows_of_the_killed < 298, "killed too late"
    resumed = run(killed)
    assert resumed["resumed_from_step"] >= 20
    same = ("loss_start", "loss_end", "train_loss_end", "steps", "parameters")
    assert {name: resumed[name] for name in same} == {name: straight[name] for name in same}
    assert weights_of(tmp_path / "killed") == weights_of(tmp_path / "straight")
    assert losses_of(tmp_path / "killed") == losses_of(tmp_path / "straight")


@pytest.mark.long
def test_a_model_that_diverges_ends_in_a_sentence_and_is_not_exported(inputs: Any, tmp_path: Path) -> None:
    diverging = OptimizerSpec(learning_rate=1e30, warmup=0.0)
    with pytest.raises(
        TrainError, match=r"The loss is (nan|inf) at step \d+ of 12, .* diverged at learning_rate=1e\+30"
    ):
        train_lm(config_of(inputs, tmp_path, optimizer=diverging))
    assert not (tmp_path / "hf").exists()
    trained_on = train_lm(config_of(inputs, tmp_path / "on", optimizer=diverging, stop_on_nan=False))
    assert trained_on["nonfinite_losses"] > 0
    assert (trained_on["loss_end"], trained_on["loss_ratio"]) == (None, None)
    assert json.loads(json.dumps(trained_on, allow_nan=False)) == trained_on


def run(config: TrainLmConfig) -> dict[str, Any]:
    arguments = [sys.executable, "-c", RUN, json.dumps(encode(config))]
    done = subprocess.run(arguments, env=environment(), check=True, capture_output=True, text=True)
    assert "NETWORK" not in done.stdout
    return json.loads(done.stdout.rpartition("RESULT ")[2])


def environment() -> dict[str, str]:
    """Without the variables that keep Hugging Face offline: the stage itself must not use the hub."""
    return {name: value for name, value in os.environ.items() if "OFFLINE" not in name}


def weights_of(output: Path) -> bytes:
    return (output / "hf/model.safetensors").read_bytes()


def losses_of(output: Path) -> list[tuple[int, float | None, float | None]]:
    rows = read_metrics(str(output / "metrics.jsonl"))
    return [(row["step"], row.get("train/loss"), row.get("eval/loss")) for row in rows]


def test_the_config_crosses_to_the_worker_as_json(inputs: Any, tmp_path: Path) -> None:
    config = config_of(inputs, tmp_path)
    assert decode(json.loads(json.dumps(encode(config)))) == config


@pytest.mark.long
def test_without_weights_a_component_counts_by_its_tokens(inputs: Any, tmp_path: Path) -> None:
    from marin_assets.stages.train.levanter_run.config import build_config

    def weights(**changes: Any) -> Any:
        config = config_of(inputs, tmp_path, **changes)
        return build_config(config, tokenizer=inputs.tokenizer_path, log_dir=str(tmp_path)).data.train_weights

    assert weights() == inputs.tokens
    assert weights(train_weights={"most": 0.25, "few": 0.75}) == {"most": 0.25, "few": 0.75}


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"num_heads": 2}, "gives a head dimension of 16, expected a whole number of at least 32"),
        ({"hidden_dim": 100, "num_heads": 3, "num_kv_heads": 3}, "gives a head dimension of 33.3333"),
        ({"hidden_dim": 96, "num_heads": 3, "num_kv_heads": 2}, "expected num_kv_heads to divide"),
    ],
)
def test_a_model_that_could_not_be_served_is_refused(
    inputs: Any, tmp_path: Path, shape: dict[str, int], sentence: str
) -> None:
    with pytest.raises(TrainError, match=sentence):
        train_lm(config_of(inputs, tmp_path, model=dataclasses.replace(TINY, **shape)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"components": {}}, "components is empty"),
        ({"components": {"most": "/nowhere"}}, "Component 'most' has no cache at '/nowhere/train'"),
        ({"tokenizer_path": "/nowhere"}, "No tokenizer.json exists at '/nowhere'"),
        ({"train_weights": {"most": 1.0}}, "expected the same names"),
        ({"train_weights": {"most": 0.0, "few": 0.0}}, "one of them above 0"),
        ({"train_weights": {"most": 1.0, "few": -1.0}}, "numbers of 0 or more"),
        ({"model": dataclasses.replace(TINY, max_seq_len=10**6)}, "at least one sequence of 1000000"),
    ],
)
def test_inputs_that_do_not_match_are_an_error(
    inputs: Any, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        train_lm(config_of(inputs, tmp_path, **changes))


def test_a_cache_of_another_tokenizer_is_refused(inputs: Any, tmp_path: Path) -> None:
    shutil.copytree(inputs.tokenizer_path, tmp_path / "tokenizer")
    changed = tmp_path / "tokenizer/tokenizer.json"
    changed.write_text(changed.read_text() + "\n")
    with pytest.raises(InputError, match="was tokenized with another tokenizer"):
        train_lm(config_of(inputs, tmp_path, tokenizer_path=str(tmp_path / "tokenizer")))
