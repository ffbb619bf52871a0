"""A plan prices what was never computed: by floating-point operations, the devices' peak, and today's prices."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_tokenize, default_tokenizer, default_train
from marin_assets.experiments.recipes.scaling_law import steps
from marin_assets.plan.plan import Planned
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.render.json_fields import plan_as_json
from marin_assets.plan.render.text import lines_of
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName
from marin_resources.configuration.settings import SettingError
from marin_resources.hardware.resources import gpu, tpu
from marin_resources.storage.output.store import Store

V5P_CHIP_FLOPS = 459e12


@pytest.fixture(autouse=True)
def price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v5p=4.2@2026-11-01")
    monkeypatch.delenv("MARIN_CLUSTER", raising=False)


def planned(prefix: Path, roots: list[Step]) -> list[Planned]:
    graph = build_graph(roots)
    return prepare_plan(graph, Store(str(prefix)), list(graph))


def training(**changes: Any) -> Step:
    documents = InputName.hardcoded("documents/web")
    tokenizer = default_tokenizer("web", documents, vocab_size=4096)
    config = SimpleTrainConfig(
        **{
            "train_batch_size": 8,
            "num_train_steps": 100,
            "learning_rate": 1e-3,
            "resources": tpu("v5p-8"),
            **changes,
        }
    )
    return default_train("one", default_tokenize("web", documents, tokenizer), model_preset("llama_30m"), config)


def test_the_sweep_of_the_full_sized_recipe_has_a_price_before_its_first_run(tmp_path: Path) -> None:
    items = planned(tmp_path, steps("1e19", {"documents": "gs://bucket/*.jsonl.zst"}))
    expected = plan_as_json(items, str(tmp_path))["expected"]
    flops = 5 * (1e18 + 3e18 + 6e18 + 1e19) + 1e20
    hours = flops / (0.4 * V5P_CHIP_FLOPS) / 3600
    assert expected["outputs_by_flops"] == 21
    assert expected["device_hours"] == pytest.approx(hours, rel=1e-4)
    assert expected["compute_s"] == pytest.approx(hours * 3600 / 4, rel=1e-4)
    assert expected["dollars"] == pytest.approx(4.2 * hours, rel=1e-4)
    *_, last = lines_of(items)
    assert f"{hours:,.1f} chip-hours, $1,27" in last
    assert "; 21 of 24 by FLOPs at 40% of the peak; 3 of 24 have no estimate" in last


def test_operations_are_those_of_all_tokens_also_where_the_batch_grows_or_the_windows_are_shorter() -> None:
    flops = training().expected_flops
    assert flops is not None
    assert training(num_train_steps=200).expected_flops == 2 * flops
    assert training(train_batch_size=((0, 8), (60, 16))).expected_flops == pytest.approx(flops * (60 + 2 * 40) / 100)
    halved = training(train_seq_len=512, train_batch_size=64).expected_flops
    longer = training(train_seq_len=1024, train_batch_size=32).expected_flops
    assert halved is not None
    assert longer is not None
    assert halved < longer < 1.5 * halved  # equal tokens, and longer attention


def test_a_tokenizer_from_elsewhere_gives_no_estimate_unless_its_tokens_are_given(tmp_path: Path) -> None:
    tokens = InputName.hardcoded("tokenized/web-1a2b3c")
    config = SimpleTrainConfig(
        train_batch_size=8,
        num_train_steps=100,
        learning_rate=1e-3,
        resources=tpu("v5p-8"),
        tokenizer_path="tokenizers/llama3",
    )
    model = model_preset("llama_30m")
    unknown = default_train("one", tokens, model, config)
    given = default_train("one", tokens, model, config, vocab_size=128_256)
    assert unknown.expected_flops is None
    assert given.expected_flops is not None
    [item] = planned(tmp_path, [unknown])
    assert item.expected is None
    with pytest.raises(ConfigError, match=r"has vocab_size=0, expected the number of tokens of its tokenizer"):
        default_train("one", tokens, model, config, vocab_size=0)


def test_devices_without_a_price_or_a_peak_are_not_priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_gpus = training(resources=gpu("H100", 8))
    *_, item = planned(tmp_path, [of_gpus])
    assert item.expected is not None
    assert item.expected.device_hours is not None
    assert item.expected.dollars is None
    *_, last = lines_of(planned(tmp_path, [of_gpus]))
    assert "$" not in last
    both = [dataclasses.replace(training(), name="checkpoints/other"), of_gpus]
    *_, last = lines_of(planned(tmp_path, both))
    assert "chip-hours without a price" in last
    *_, item = planned(tmp_path, [training(resources=gpu(count=8))])
    assert item.expected is None
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v5p=much")
    with pytest.raises(SettingError, match=r"v5p=much"):
        planned(tmp_path, [training()])


def test_operations_that_are_no_number_are_refused_and_are_in_no_version() -> None:
    step = training()
    with pytest.raises(ConfigError, match=r"has expected_flops=-1\.0, expected operations above 0 or None\.$"):
        dataclasses.replace(step, expected_flops=-1.0)
    other = dataclasses.replace(step, expected_flops=1.0)
    assert build_graph([step])[step].version == build_graph([other])[other].version


def test_the_json_of_a_step_has_its_price(tmp_path: Path) -> None:
    *_, output = json.loads(json.dumps(plan_as_json(planned(tmp_path, [training()]), str(tmp_path))))["outputs"]
    assert output["expected"]["median_of"] == 0
    assert output["expected"]["dollars"] == pytest.approx(4.2 * output["expected"]["device_hours"])
