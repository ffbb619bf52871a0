"""What an environment, a sampler or a disk does wrong costs what it spoilt, with a reason, or is a sentence."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rl_training import KILLED, results_of, rl_config

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.plan import Unit, units_of
from marin_assets.stages.train.rl.rollout import Rollout, read_rollouts
from marin_assets.stages.train.rl.sampling.environment_process import EnvironmentFault, EnvironmentProcess
from marin_assets.stages.train.rl.sampling.sampler import DamagedUnitError, Sampler, read_unit, unit_path
from marin_assets.stages.train.rl.sampling.unit import UnitSampler
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import write_json
from marin_resources.wire.config_json import encode

FAULTS = {
    "ends": ("example_raised", "IndexError: list index out of range"),
    "stops": ("example_raised", "StopIteration"),
    "huge": ("example_too_large", "has 2,097,164 characters, expected at most 1,048,576"),
    "key": ("example_not_json", "does not begin with '$'"),
    "circle": ("example_not_json", "Circular reference"),
    "bytes": ("example_not_json", "bytes is not JSON serializable"),
    "nan": ("example_not_json", "Out of range float values"),
    "unprintable": ("example_raised", "RuntimeError: no text"),
    "unprintable error": ("prompt_raised", "Unprintable"),
    "long text": ("prompt_too_large", "characters, expected at most 1,048,576"),
    "surrogate": ("prompt_no_text", "has a lone surrogate"),
    "number": ("prompt_no_text", "the prompt is 3"),
    "long reply": ("reply_too_large", "characters, expected at most 1,048,576"),
    "odd reply": ("reply_no_text", "the reply is 3"),
    "odd reward": ("reward_raised", "RuntimeError: no text"),
}


def hostile(kind: str) -> Lesson:
    lesson: Lesson = unwrap_versioned_value(Lesson(environment="rl_environments:Hostile", arguments={"kind": kind}))
    return lesson


def call_all(environments: EnvironmentProcess, kind: str) -> None:
    example = environments.example(kind, 0, 12345)
    environments.prompt(kind, example)
    environments.reply(kind, example, "e")
    environments.reward(kind, example, "e")


def test_whatever_a_method_returns_is_a_fault_with_a_reason_and_the_process_goes_on() -> None:
    lessons = {kind: hostile(kind) for kind in FAULTS} | {"same": hostile("same")}
    with EnvironmentProcess(lessons, timeout_s=60) as environments:
        for kind, (reason, note) in FAULTS.items():
            with pytest.raises(EnvironmentFault) as raised:
                call_all(environments, kind)
            assert raised.value.reason == reason
            assert note in raised.value.note
            assert len(raised.value.note) <= 300
        assert [environments.example("same", 0, index) for index in (1, 2)] == [{"number": 1}] * 2


def test_sets_have_the_same_order_in_every_process_of_environments() -> None:
    lessons = {"order": unwrap_versioned_value(Lesson(environment="rl_environments:OfSets"))}
    seen = []
    for _ in range(2):
        with EnvironmentProcess(lessons, timeout_s=60) as environments:
            seen.append(environments.example("order", 0, 0))
    assert seen[0] == seen[1]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ends", "huge", "surrogate", "messages", "long reply", "same"])
def test_a_training_goes_on_without_the_rollouts_that_an_environment_spoils(
    kind: str, model: str, tmp_path: Path
) -> None:
    lessons = {"hostile": hostile(kind), "the": lesson_of(TargetWord(), weight=3.0)}
    result = train_rl(rl_config(model, tmp_path, lessons=unwrap_versioned_value(lessons), num_train_steps=3))
    unused = result["rollouts_unused"]
    assert result["rollouts_used"] + sum(unused.values()) == result["rollouts"] == 3 * 16
    expected = FAULTS.get(kind, ("prompt_without_template" if kind == "messages" else "", ""))[0]
    assert set(unused) - {"alone_in_its_group"} == ({expected} if expected else set())
    assert all(len(rollout.note) <= 300 for rollout in read_rollouts(str(tmp_path)))


def unit_of_a_training(folder: Path) -> tuple[Any, Unit, list[Rollout]]:
    config = rl_config("no model", folder, lessons={"the": unwrap_versioned_value(lesson_of(TargetWord()))})
    unit = units_of(config, 3)[1]
    rollouts = [
        Rollout(
            id=f"{unit.step}-{group.number}-{member}", step=unit.step, group=group.number, member=member,
            lesson=group.lesson, weights_step=unit.weights_step, weights_digest="", example={}, prompt="", answer="",
            prompt_ids=[1], ids=[2], logprobs=[-1.0], mask=[1], finish="stop",
        )
        for group in unit.groups for member in range(len(group.seeds))
    ]  # fmt: skip
    return config, unit, rollouts


def written(unit: Unit, rollouts: list[Rollout], kind: str) -> str:
    whole = json.dumps([vars(rollout) for rollout in rollouts])
    others = [replace(rollout, step=unit.step + 4) for rollout in rollouts]
    return {
        "empty": "",
        "cut": whole[:-30],
        "no list": "3",
        "other rows": json.dumps([{"step": 3}]),
        "another class": json.dumps([{"$dataclass": "no.such:Thing"}]),  # nothing is imported by it
        "of a future step": json.dumps([vars(rollout) for rollout in others]),
        "less": json.dumps([vars(rollout) for rollout in rollouts[1:]]),
        "twice": json.dumps([vars(rollout) for rollout in [*rollouts, *rollouts]]),
        "older weights": json.dumps([vars(replace(rollout, weights_step=0)) for rollout in rollouts]),
    }[kind]


KINDS = ("empty", "cut", "no list", "other rows", "another class", "of a future step", "less", "twice", "older weights")


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_that_does_not_have_its_rollouts_is_sampled_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config, unit, rollouts = unit_of_a_training(tmp_path)
    path = Path(unit_path(config.output_path, unit))
    path.parent.mkdir(parents=True)
    path.write_text(written(unit, rollouts, kind))
    with pytest.raises(DamagedUnitError, match=f"{re.escape(str(path))}.* Compute the step again"):
        read_unit(config.output_path, unit)
    sampler = object.__new__(Sampler)
    sampler._config = config
    sampler._decoder = sampler._environments = sampler._digest = None
    monkeypatch.setattr(Sampler, "_take_weights", lambda self, source: 0)
    monkeypatch.setattr(UnitSampler, "sample", lambda self, planned, digest: rollouts)
    call = json.dumps(encode(unit)), "null"
    with caplog.at_level(logging.WARNING):
        assert sampler.sample(*call)["tokens"] == len(rollouts)
    assert "It is sampled again" in caplog.text
    assert read_unit(config.output_path, unit) == rollouts
    before = path.read_bytes()
    assert sampler.sample(*call)["tokens"] == 0  # by another sampler: it is whole
    assert path.read_bytes() == before


@pytest.mark.long
def test_units_that_were_left_by_others_change_nothing(model: str, tmp_path: Path) -> None:
    train_rl(rl_config(model, tmp_path / "plain"))
    config = rl_config(model, tmp_path / "left")
    for step in (0, 4):
        unit = units_of(config, step)[0]
        write_json(unit_path(config.output_path, unit), [{"step": step}])
    write_json(unit_path(config.output_path, replace(unit, step=99)), ["late"])
    train_rl(config)
    assert results_of(tmp_path / "left") == results_of(tmp_path / "plain")
    assert not (tmp_path / "left/units").exists()


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, resource.RLIM_INFINITY))
"""


@pytest.mark.long
@pytest.mark.parametrize("samplers", [0, 1])
def test_a_disk_that_is_full_ends_the_training_with_the_error_and_with_room_it_is_resumed(
    samplers: int, model: str, tmp_path: Path
) -> None:
    train_rl(rl_config(model, tmp_path / "whole"))
    config = rl_config(model, tmp_path / "full", samplers=samplers)
    program = FULL_DISK.format(room=6_000) + KILLED
    paths = json.dumps([path for path in sys.path if path])
    done = subprocess.run(
        [sys.executable, "-c", program, paths, json.dumps(encode(config)), "0"],
        capture_output=True, text=True, timeout=900, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # Python does not notice that its own files are cut
    )  # fmt: skip
    assert done.returncode == 1, done.stderr[-3000:]
    assert "File too large" in done.stderr.splitlines()[-1]
    train_rl(config)
    assert results_of(tmp_path / "full") == results_of(tmp_path / "whole")


def test_an_environment_that_prepares_itself_in_vain_ends_the_training_before_a_model_is_loaded(
    model: str, tmp_path: Path
) -> None:
    lessons = unwrap_versioned_value({"mine": Lesson(environment="rl_environments:NotPrepared")})
    with pytest.raises(TrainError, match="'mine' cannot be prepared: RuntimeError: no dictionary"):
        train_rl(rl_config(model, tmp_path, lessons=lessons))
