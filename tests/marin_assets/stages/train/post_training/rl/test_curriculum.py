"""A curriculum draws lessons by what the model has learnt, and the same ones however often the training is killed."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rl_environments import Turns
from rl_training import results_of, rl_config, run_to

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.curriculum.progress import FILE, LessonProgress
from marin_assets.stages.train.rl.curriculum.rules import (
    Curriculum,
    Progress,
    first_progress,
    has_plateau,
    progress_after,
    weight_of,
    weights_of,
)
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.plan import units_of
from marin_assets.stages.train.rl.rollout import Rollout, path_of_step, read_rollouts, write_step
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value


def rules(**changes: Any) -> Curriculum:
    curriculum: Curriculum = unwrap_versioned_value(
        Curriculum(**{"opens_after": {"hard": ("easy",)}, "plateau_examples": 4, **changes})
    )
    return curriculum


def lessons_of(*names: str, **others: Lesson) -> dict[str, Lesson]:
    lessons: dict[str, Lesson] = unwrap_versioned_value({name: lesson_of(TargetWord()) for name in names} | others)
    return lessons


def test_the_weight_is_that_of_the_formula() -> None:
    curriculum = rules()
    for success, examples in ((0.5, 0), (0.5, 100), (0.2, 10), (0.99, 500)):
        expected = max(4 * success * (1 - success) * (1 + math.exp(-examples / 100)), 0.1)
        progress = Progress(state="open", success=success, examples=examples)
        assert weight_of(curriculum, progress) == pytest.approx(expected, rel=1e-12)
    assert weight_of(curriculum, Progress(state="open", success=0.0)) == 0.1


def test_success_is_a_moving_average_of_the_share_of_rewarded_answers() -> None:
    curriculum, lessons = rules(), lessons_of("easy", "hard")
    before = first_progress(curriculum, lessons)
    assert before["easy"].success == 0.5
    after = progress_after(curriculum, before, [("easy", [0.0, 0.3, 1.0, 0.0]), ("easy", [1.0]), ("easy", [])])
    assert after["easy"].success == pytest.approx((0.5 * 0.9 + 0.1 * 0.5) * 0.9 + 0.1)
    assert after["easy"].examples == 2
    assert after["hard"] == before["hard"]


def test_a_plateau_neither_rises_nor_varies() -> None:
    curriculum = rules()
    assert has_plateau(curriculum, [0.8, 0.81, 0.79, 0.8])
    assert not has_plateau(curriculum, [0.8, 0.8, 0.8])
    assert not has_plateau(curriculum, [0.6, 0.7, 0.8, 0.9])
    assert not has_plateau(curriculum, [0.2, 0.8, 0.8, 0.2])
    assert has_plateau(curriculum, [0.0] * 4)


def test_a_lesson_opens_when_those_before_it_are_learnt_and_a_mastered_one_is_drawn_no_more() -> None:
    curriculum, lessons = rules(smoothing=0.3, plateau_slope=0.6), lessons_of("easy", "hard")
    progress, states = first_progress(curriculum, lessons), []
    for _ in range(12):
        states.append((progress["easy"].state, progress["hard"].state))
        weights = weights_of(curriculum, lessons, progress)
        assert sum(weights.values()) == pytest.approx(2)
        assert (weights["hard"] > 0) == (progress["hard"].state == "open")
        assert (weights["easy"] > 0) == (progress["easy"].state == "open")
        progress = progress_after(curriculum, progress, [("easy", [1.0, 1.0])])
    assert list(dict.fromkeys(states)) == [("open", "closed"), ("open", "open"), ("graduated", "open")]
    for _ in range(12):
        progress = progress_after(curriculum, progress, [("hard", [1.0])])
    assert {of.state for of in progress.values()} == {"graduated"}
    assert min(weights_of(curriculum, lessons, progress).values()) > 0  # nothing else is left


def test_a_lesson_that_is_not_trained_keeps_its_share() -> None:
    lessons = lessons_of("easy", "hard", eyed=lesson_of(TargetWord(), weight=0.5, is_trained=False))
    weights = weights_of(rules(), lessons, first_progress(rules(), lessons))
    assert weights == {"easy": 2.0, "hard": 0.0, "eyed": 0.5}


def progress_of(config: TrainRlConfig) -> LessonProgress:
    return LessonProgress(config.curriculum, config.lessons, output_path=config.output_path, staleness=config.staleness)


def stored_step(config: TrainRlConfig, step: int, progress: LessonProgress) -> None:
    """Store rollouts of a step, in which three of four answers have a reward, and one in the lesson "other"."""
    groups = [group for unit in units_of(config, step, progress.weights_for(step)) for group in unit.groups]
    rollouts = [
        Rollout(
            id=f"{step:07}-{group.number:04}-{member:04}", step=step, group=group.number, member=member,
            lesson=group.lesson, weights_step=0, weights_digest="", example={}, prompt="", answer="", prompt_ids=[1],
            ids=[2], logprobs=[-1.0], mask=[1], finish="stop",
            reward=float(member < (1 if group.lesson == "other" else 3)),
        )
        for group in groups for member in range(len(group.seeds))
    ]  # fmt: skip
    write_step(config.output_path, step, rollouts)


@pytest.mark.parametrize("staleness", [0, 2])
def test_the_shares_of_a_step_follow_from_the_steps_before_its_weights_alone(staleness: int, tmp_path: Path) -> None:
    config = rl_config(
        "no model", tmp_path, lessons=lessons_of("easy", "other", "hard"), staleness=staleness, num_train_steps=40,
        curriculum=rules(smoothing=0.3),
    )  # fmt: skip
    progress = progress_of(config)
    planned = []
    for step in range(20):
        planned.append(progress.weights_for(step))
        stored_step(config, step, progress)
    assert planned[: staleness + 1] == [planned[0]] * (staleness + 1)
    assert planned[staleness + 1] != planned[0]
    assert planned[-1]
    assert planned[-1]["hard"] > 0
    assert [progress_of(config).weights_for(step) for step in range(20)] == planned
    for later in range(19 - staleness, 20):
        Path(path_of_step(config.output_path, later)).unlink()
    again = progress_of(config)
    assert again.weights_for(19) == planned[19]
    assert again.metrics(19)["rl/lesson_state/hard"] == 1.0
    Path(path_of_step(config.output_path, 3)).unlink()
    with pytest.raises(TrainError, match=r"step-0000003.parquet' are missing"):
        progress_of(config).weights_for(19)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"opens_after": {"hard": ("esy",)}}, "has 'esy', expected one of 'easy', 'hard'. Did you mean 'easy'?"),
    "not trained": ({"opens_after": {"hard": ("eyed",)}}, "has 'eyed', expected one of 'easy', 'hard'"),
    "itself": ({"opens_after": {"hard": ("hard",)}}, "lets none of hard open, as each waits for another"),
    "circle": ({"opens_after": {"hard": ("easy",), "easy": ("hard",)}}, "lets none of easy, hard open"),
    "a text": ({"opens_after": {"hard": "easy"}}, "opens_after is {'hard': 'easy'}, expected"),
    "a share": ({"smoothing": 1.5}, "smoothing=1.5, expected a number from 0 to 1"),
    "a window": ({"plateau_examples": 1}, "plateau_examples is 1, expected a number of at least 2"),
    "newness": ({"newness": 0.0}, "newness is 0.0, expected a number above 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_curriculum_is_a_sentence(mistake: str, tmp_path: Path) -> None:
    changes, says = MISTAKES[mistake]
    lessons = lessons_of("easy", "hard", eyed=lesson_of(TargetWord(), is_trained=False))
    with pytest.raises(TrainError, match=re.escape(says)):
        rl_config("no model", tmp_path, lessons=lessons, curriculum=rules(**changes)).check_fields()


def three_lessons(model: str, output: Path, **changes: Any) -> TrainRlConfig:
    """Three lessons: while it is trained one opens, another graduates, and the third stays closed."""
    lessons = lessons_of("the", "a", turns=lesson_of(Turns()))
    curriculum = rules(
        opens_after={"a": ("turns",), "the": ("turns", "a")}, plateau_examples=2, plateau_slope=1.0,
        plateau_variation=1.0, graduates_at=0.8, smoothing=0.3,
    )  # fmt: skip
    return rl_config(model, output, **{"lessons": lessons, "curriculum": curriculum, "num_train_steps": 8, **changes})


def test_a_training_follows_the_curriculum_and_writes_how_it_went(model: str, tmp_path: Path) -> None:
    config = three_lessons(model, tmp_path, num_train_steps=4, staleness=0)
    train_rl(config)
    steps = json.loads((tmp_path / FILE).read_text())
    assert steps[0]["turns"] == {"state": "open", "success": 0.5, "examples": 0, "share": 1.0}
    assert steps[0]["a"]["state"] == "closed"
    assert steps[-1]["a"]["state"] == "open"
    drawn = {(rollout.step, rollout.lesson) for rollout in read_rollouts(str(tmp_path))}
    assert {lesson for step, lesson in drawn if step == 0} == {"turns"}
    assert all(steps[step][lesson]["share"] > 0 for step, lesson in drawn)
    rows = read_metrics(str(tmp_path / "metrics.jsonl"))
    for name in ("share", "success"):
        assert [row[f"rl/lesson_{name}/a"] for row in rows] == [step["a"][name] for step in steps]
    assert rows[0]["rl/lesson_state/a"] == 0.0
    again = progress_of(config)  # from the rollouts alone
    assert [again.metrics(step)["rl/lesson_share/turns"] for step in range(4)] == [
        row["rl/lesson_share/turns"] for row in rows
    ]


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("samplers", [0, 2])
def test_a_curriculum_is_killed_at_drawn_moments_and_gives_the_same_bytes(
    samplers: int, model: str, tmp_path: Path
) -> None:
    whole = three_lessons(model, tmp_path / "whole", steps_per_checkpoint=1, samplers=samplers)
    moments = run_to(whole)
    assert moments
    draw, kills, number = random.Random(samplers), 0, 0
    while kills < 8:
        config = replace(whole, output_path=str(tmp_path / str(number)))
        while run_to(config, kill_at=draw.randrange(1, moments // 2)) is None:
            kills += 1
        assert results_of(config.output_path) == results_of(whole.output_path)
        assert Path(config.output_path, FILE).read_bytes() == Path(whole.output_path, FILE).read_bytes()
        number += 1
