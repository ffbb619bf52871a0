"""A training on rewards: what it learns, what it waits for, what became of its rollouts, and some to read; or several
trainings over one another."""

from __future__ import annotations

from typing import Any

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.rewards.counts import counts_of, rollouts_address
from marin_assets.browse.pages.rewards.samples import samples_of
from marin_assets.browse.pages.rewards.series import MOST_LINES, draw_measures, lessons_of, rows_of_numbers
from marin_assets.browse.pages.rewards.waits import about_waits
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.reward_training import (
    RewardTraining,
    is_reward_training,
    read_reward_training,
    tokenizer_of,
)
from marin_assets.stages.train.rl.measures.health import signs_of
from marin_assets.stages.train.rl.measures.passes import PASS_1

NOTES = 20


def rewards(asked: Asked) -> Shown:
    texts = list(dict.fromkeys(asked.query.texts("path")))
    if not texts or len(texts) > MOST_LINES:
        raise NotThereError(
            f"path occurs {len(texts)} times, expected 1 to {MOST_LINES} trainings on rewards. Open one from its "
            "output."
        )
    trainings = [_training(asked, text, with_rollouts=len(texts) == 1) for text in texts]
    return _several(trainings) if len(trainings) > 1 else _one(asked, trainings[0])


def _training(asked: Asked, text: str, *, with_rollouts: bool) -> RewardTraining:
    place = asked.places.resolve(text)
    state = asked.owner(place)
    if state is None or not is_reward_training(state):
        raise NotThereError(f"{place.text!r:.300} is no training on rewards. Open the output of a step of default_rl.")
    return read_reward_training(asked.places, state, with_rollouts=with_rollouts)


def _one(asked: Asked, training: RewardTraining) -> Shown:
    part = asked.query.text("lesson")
    every_lesson = lessons_of(training)
    lessons = [name for name in every_lesson if part.lower() in name.lower()]
    tokenizer, no_tokenizer = tokenizer_of(asked.places, training.state)
    samples = samples_of(training, tokenizer)
    facts: dict[str, Any] = {
        "training": training,
        "state": training.state,
        "signs": signs_of(training.metrics),
        "charts": draw_measures([training], lessons),
        "numbers": list(rows_of_numbers(training, lessons)),
        "part": part,
        "lessons": len(every_lesson),
        "is_old": bool(training.metrics) and not any(PASS_1 in row for row in training.metrics),
        "not_drawn": max(len(lessons) - (MOST_LINES - 1), 0),
        "waits": about_waits(training.metrics),
        "counts": counts_of(training),
        "samples": samples,
        "no_tokenizer": no_tokenizer,
        "all_rollouts": rollouts_address(training),
        "notes": training.notes[:NOTES],
        "more_notes": max(len(training.notes) - NOTES, 0),
    }
    return Shown(template="rewards", facts=facts)


def _several(trainings: list[RewardTraining]) -> Shown:
    facts = {
        "trainings": [
            {
                "training": training,
                "signs": signs_of(training.metrics),
                "waits": about_waits(training.metrics),
                "numbers": list(rows_of_numbers(training, [])),
            }
            for training in trainings
        ],
        "charts": draw_measures(trainings, []),
    }
    return Shown(template="rewards_of_several", facts=facts)
