"""Scripts in the shape of Marin's tutorials, of which only the imports are other ones: they run, at Marin's paths.

Hello world, Executor 101, and the tiny model on a CPU. In place of the hub's data set and tokenizer, the last one has
documents below the prefix, and a tokenizer of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics

import pytest

pytestmark = pytest.mark.long

FUNCTIONS = """
@dataclass(frozen=True)
class GenerateDataConfig:
    n: int
    output_path: str


def generate_data(config: GenerateDataConfig):
    with {open}(os.path.join(config.output_path, "numbers.json"), "w") as file:
        json.dump(list(range(config.n)), file)


@dataclass(frozen=True)
class ComputeStatsConfig:
    input_path: str
    output_path: str


def compute_stats(config: ComputeStatsConfig):
    with {open}(os.path.join(config.input_path, "numbers.json")) as file:
        numbers = json.load(file)
    stats = {{"sum": sum(numbers), "min": min(numbers), "max": max(numbers)}}
    with {plain_open}(os.path.join(config.output_path, "stats.json"), "w") as file:
        json.dump(stats, file)


n = 100

data = ExecutorStep(
    name="hello_world/data",
    description=f"The numbers below {{n}}.",
    fn=generate_data,
    config=GenerateDataConfig(n=n, output_path=this_output_path()),
)

stats = ExecutorStep(
    name="hello_world/stats",
    description="Their statistics.",
    fn=compute_stats,
    config=ComputeStatsConfig(input_path=output_path_of(data), output_path=this_output_path()),
)

if __name__ == "__main__":
    executor_main(steps=[data, stats], description="Statistics of some numbers.")
"""
HELLO_WORLD = """
import json
import logging
import os
from dataclasses import dataclass

from fsspec import open as open_url

from marin_assets import Step as ExecutorStep, executor_main, output_path_of, this_output_path

logger = logging.getLogger("ray")
""" + FUNCTIONS.format(open="open_url", plain_open="open_url")
EXECUTOR_101 = """
import json
import logging
import os
from dataclasses import dataclass
import fsspec

from marin_assets import (
    Step as ExecutorStep,
    executor_main,
    output_path_of,
    this_output_path
)
""" + FUNCTIONS.format(open="fsspec.open", plain_open="open")
TINY_MODEL = """
from levanter.data.text import TextLmDatasetFormat

from marin_assets import InputName, Resources as ResourceConfig, executor_main, versioned
from marin_assets.defaults import default_tokenize, default_tokenizer, default_train
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.presets import llama_nano

tinystories_hf_id = "roneneldan/TinyStories"
tinystories = InputName.hardcoded("raw/tinystories")
marin_tokenizer = default_tokenizer("tinystories", tinystories, vocab_size=512)

tinystories_tokenized = default_tokenize(
    name=tinystories_hf_id,
    dataset=tinystories,
    tokenizer=marin_tokenizer,
    format=TextLmDatasetFormat(),
    sample_count=1000,
)

nano_train_config = SimpleTrainConfig(
    resources=ResourceConfig.with_cpu(),
    train_batch_size=4,
    num_train_steps=100,
    learning_rate=6e-4,
    weight_decay=0.1,
    max_eval_batches=4,
)

nano_tinystories_model = default_train(
    name="marin-nano-tinystories",
    tokenized=tinystories_tokenized,
    model_config=versioned(llama_nano),
    train_config=nano_train_config,
    tags=["llama", "nano", "tinystories", "tutorial"],
    eval_harness_tasks=[],
    use_default_validation=False,
)

if __name__ == "__main__":
    executor_main(
        steps=[
            nano_tinystories_model,
        ]
    )
"""


def run(script: Path, *options: str, home: Path) -> str:
    """Run a script as Marin's documentation does, from its own folder. Return what it prints."""
    env = {**os.environ, "DAGSTER_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, script.name, "--prefix", "local_store", *options],
        cwd=script.parent,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("text", [HELLO_WORLD, EXECUTOR_101], ids=["hello_world", "executor_101"])
def test_two_steps_write_to_the_paths_that_marin_gives_them(text: str, tmp_path: Path, dagster_home: Path) -> None:
    script = tmp_path / "hello_world.py"
    script.write_text(text)
    assert "2 to run" in run(script, "--dry_run", "True", home=dagster_home)
    assert not (tmp_path / "local_store").exists()
    assert "2 computed, 0 reused, 0 failed" in run(script, home=dagster_home)
    output = tmp_path / "local_store/hello_world"
    assert json.loads((output / "data-d50b06/numbers.json").read_text()) == list(range(100))
    assert json.loads((output / "stats-b5daf3/stats.json").read_text()) == {"sum": 4950, "min": 0, "max": 99}
    record = json.loads((output / "stats-b5daf3/.executor_info").read_text())
    assert record["description"] == "Their statistics."
    [experiment] = (tmp_path / "local_store/experiments").glob("hello_world-*.json")
    assert json.loads(experiment.read_text())["description"] == "Statistics of some numbers."
    printed = run(script, "--force_run_failed", "True", "--run_only", '["stats"]', home=dagster_home)
    assert "0 computed, 2 reused, 0 failed" in printed


def test_a_tiny_model_is_trained_on_a_cpu_and_exported(tmp_path: Path, dagster_home: Path) -> None:
    stories = tmp_path / "local_store/raw/tinystories"
    stories.mkdir(parents=True)
    texts = [text for topic in sorted(topics) for text in topics[topic].split("\n\n") if text.strip()]
    rows = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts)]
    assert len(rows) > 1000
    (stories / "part-00000.jsonl").write_text("\n".join(rows))
    script = tmp_path / "train_tiny_model_cpu.py"
    script.write_text(TINY_MODEL)
    assert "4 computed, 0 reused, 0 failed" in run(script, home=dagster_home)
    [model] = (tmp_path / "local_store/checkpoints").glob("marin-nano-tinystories-??????")
    record = json.loads((model / ".executor_info").read_text())
    assert record["config"]["model"]["hidden_dim"] == 32
    assert record["result"]["loss_end"] < record["result"]["loss_start"]
    assert (model / "checkpoints/step-99").is_dir()
    assert re.search(r'"hidden_size": 32\b', (model / "hf/config.json").read_text())
    steps = [json.loads(line)["step"] for line in (model / "metrics.jsonl").read_text().splitlines()]
    assert steps[-1] == 99
    [sample] = (tmp_path / "local_store/samples/roneneldan").glob("TinyStories-??????")
    assert json.loads((sample / ".executor_info").read_text())["result"]["kept"] == 1000
    assert "0 computed, 4 reused, 0 failed" in run(script, home=dagster_home)
