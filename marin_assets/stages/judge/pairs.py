"""Pairs of answers to the same instruction: a model's, and a baseline's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marin_assets.stages.judge.conversations import Conversation, JudgeError, read_conversations


@dataclass(frozen=True, kw_only=True)
class Pair:
    id: str
    """That of the instruction."""
    instruction: str
    answer: str | None
    """The model's; None if it gave none."""
    baseline: str | None
    """The baseline's."""
    category: str | None
    difficulty: float | None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None and self.baseline is not None

    @property
    def is_equal(self) -> bool:
        return self.is_answered and self.answer == self.baseline

    @property
    def longer(self) -> int:
        """Characters of the answer, less those of the baseline's."""
        return len(self.answer or "") - len(self.baseline or "")


def read_pairs(answers_path: str, baseline_path: str) -> list[Pair]:
    """Return the pairs in the order of `answers_path`.

    Raises JudgeError for an instruction that only one side has, or with another text, with several turns, and for a
    side without answers; else as `read_conversations`.
    """
    mine, theirs = read_conversations(answers_path), read_conversations(baseline_path)
    if lacking := sorted(mine.keys() ^ theirs.keys()):
        raise JudgeError(
            f"{answers_path!r} and {baseline_path!r} have {len(lacking)} instructions that only one of them has, such "
            f"as {lacking[0]!r}, expected the same ids. Answer the same instructions with both models."
        )
    for path, side in ((answers_path, mine), (baseline_path, theirs)):
        if not any(conversation.answers for conversation in side.values()):
            raise JudgeError(f"No conversation below {path!r} has an answer. Give the output of answer_instructions.")
    for id_, conversation in mine.items():
        _require_comparable(conversation, theirs[id_], {answers_path: conversation, baseline_path: theirs[id_]})
    return [_pair(conversation, theirs[id_]) for id_, conversation in mine.items()]


def _require_comparable(mine: Conversation, theirs: Conversation, sides: Mapping[str, Conversation]) -> None:
    for side in (mine, theirs):
        if len(side.turns) > 1:
            raise JudgeError(
                f"The instruction {side.id!r} has {len(side.turns)} turns, expected one. Grade conversations of "
                "several turns (grade_answers), or leave it out."
            )
    if (mine.system, mine.turns) != (theirs.system, theirs.turns):
        texts = " and ".join(
            f"{(side.system or '') + side.turns[0]!r:.100} below {path!r}" for path, side in sides.items()
        )
        raise JudgeError(
            f"The instruction {mine.id!r} is {texts}, expected the same text. Answer the same instructions with both "
            "models."
        )


def _pair(mine: Conversation, theirs: Conversation) -> Pair:
    return Pair(
        id=mine.id,
        instruction=mine.turns[0] if mine.system is None else f"{mine.system}\n\n{mine.turns[0]}",
        answer=next(iter(mine.answers), None),
        baseline=next(iter(theirs.answers), None),
        category=theirs.category if mine.category is None else mine.category,
        difficulty=theirs.difficulty if mine.difficulty is None else mine.difficulty,
    )
