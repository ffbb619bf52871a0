"""Sample and grade a unit: a function of the weights and of the unit alone.

The rows of a batch share what is computed, so a unit has the decoder for itself. An answer has several turns where the
environment replies: the reply's tokens follow, with mask 0, and the model continues after them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from marin_assets.inference.decoder import Completion, Decoder, Prompt
from marin_assets.stages.train.rl.plan import PlannedGroup, Unit
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.environment_process import EnvironmentFault, EnvironmentProcess

SEEDS_OF_TURNS = 2**32


class SamplingSettings(Protocol):
    """Fields of the config of a training, or of an evaluation."""

    @property
    def seed(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def max_tokens(self) -> int: ...


@dataclass(eq=False)
class _Answer:
    """An answer under way."""

    group: PlannedGroup
    member: int
    example: Any = None
    prompt: str = ""
    prompt_ids: list[int] = field(default_factory=list)
    stops: tuple[str, ...] = ()
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    turns: int = 0
    finish: str = ""
    reward: float | None = None
    reason: str = ""
    note: str = ""


class UnitSampler:
    """Samples units with the weights that its decoder has."""

    def __init__(self, config: SamplingSettings, decoder: Decoder, environments: EnvironmentProcess) -> None:
        self._config, self._decoder, self._environments = config, decoder, environments

    def sample(self, unit: Unit, weights_digest: str) -> list[Rollout]:
        """Return the rollouts of a unit, by group and number. What an environment spoils is not used, with a reason."""
        answers = [answer for group in unit.groups for answer in self._begin(group)]
        under_way = {number: answer for number, answer in enumerate(answers) if not answer.reason}
        for number, answer in under_way.items():
            self._admit(number, answer)
        while not self._decoder.is_idle:
            for number, completion in self._decoder.step():
                self._end_turn(number, answers[number], completion)
        for answer in under_way.values():
            self._attempt(answer, lambda answer=answer: self._grade(answer))  # type: ignore[misc]
        return [self._rollout(unit, answer, weights_digest) for answer in answers]

    def _begin(self, group: PlannedGroup) -> list[_Answer]:
        """The answers of a group, with the prompt or the reason why they have none."""
        first = _Answer(group, 0)
        self._attempt(first, lambda: self._ask(first))
        others = range(1, len(group.seeds))
        return [first] + [
            _Answer(
                group,
                member,
                first.example,
                first.prompt,
                list(first.prompt_ids),
                first.stops,
                reason=first.reason,
                note=first.note,
            )
            for member in others
        ]

    def _ask(self, answer: _Answer) -> None:
        lesson, tokenizer = answer.group.lesson, self._decoder.tokenizer
        answer.stops = self._environments.stops(lesson)
        answer.example = self._environments.example(lesson, self._config.seed, answer.group.index)
        prompt = self._environments.prompt(lesson, answer.example)
        if isinstance(prompt, str):
            ids = [tokenizer.first_token_id, *tokenizer.encode(prompt)]
        elif tokenizer.chat_template is None:
            raise EnvironmentFault("prompt_without_template", "the prompt is messages, without a chat template")
        else:
            ids = self._encoded(prompt)
        answer.prompt_ids, answer.prompt = ids, tokenizer.decode(ids, skip_special_tokens=True)
        if len(ids) >= self._decoder.max_length:
            note = (
                f"the prompt has {len(ids)} tokens, and prompt and answer together {self._decoder.max_length} at most"
            )
            raise EnvironmentFault("prompt_too_long", note)

    def _encoded(self, messages: list[dict[str, str]]) -> list[int]:
        try:
            return self._decoder.tokenizer.encode_chat(messages)
        except Exception as error:  # a template is a program, which refuses what it does not expect
            raise EnvironmentFault("prompt_not_in_template", f"{type(error).__name__}: {error}") from error

    def _admit(self, number: int, answer: _Answer) -> None:
        """Let the model continue an answer, which has room."""
        ids = (*answer.prompt_ids, *answer.ids)
        self._decoder.admit(
            number,
            Prompt(
                ids=ids,
                max_tokens=min(self._config.max_tokens - sum(answer.mask), self._decoder.max_length - len(ids)),
                stops=answer.stops,
                temperature=self._config.temperature,
                seed=answer.group.seeds[answer.member] * SEEDS_OF_TURNS + answer.turns,
                keeps_drawn_logprobs=True,
            ),
        )

    def _end_turn(self, number: int, answer: _Answer, completion: Completion) -> None:
        drawn = [*completion.ids, *([] if completion.end_token is None else [completion.end_token])]
        answer.ids += drawn
        answer.logprobs += completion.drawn_logprobs or [0.0] * len(drawn)  # at temperature 0 each was certain
        answer.mask += [1] * len(drawn)
        answer.finish = completion.finish
        answer.turns += 1
        if completion.finish == "stop" and self._attempt(answer, lambda: self._reply(answer)):
            self._admit(number, answer)

    def _reply(self, answer: _Answer) -> bool:
        """Add the reply of the environment. Returns whether the model continues."""
        reply = self._environments.reply(answer.group.lesson, answer.example, self._text(answer))
        if reply is None:
            return False
        ids = self._decoder.tokenizer.encode(reply)
        longer = len(answer.prompt_ids) + len(answer.ids) + len(ids)
        if longer >= self._decoder.max_length or sum(answer.mask) >= self._config.max_tokens:
            answer.finish = "length"
            return False
        answer.ids += ids
        answer.logprobs += [0.0] * len(ids)
        answer.mask += [0] * len(ids)
        return True

    def _grade(self, answer: _Answer) -> None:
        if not answer.reason:
            answer.reward = self._environments.reward(answer.group.lesson, answer.example, self._text(answer))

    def _attempt(self, answer: _Answer, work: Callable[[], bool | None]) -> bool:
        """Whether `work` returned True. A fault of the environment is noted with the answer."""
        try:
            return bool(work())
        except EnvironmentFault as fault:
            answer.reason, answer.note = fault.reason, fault.note
            return False

    def _text(self, answer: _Answer) -> str:
        return self._decoder.tokenizer.decode(answer.ids, skip_special_tokens=True)

    def _rollout(self, unit: Unit, answer: _Answer, weights_digest: str) -> Rollout:
        return Rollout(
            id=f"{unit.step:07}-{answer.group.number:04}-{answer.member:04}",
            step=unit.step,
            group=answer.group.number,
            member=answer.member,
            lesson=answer.group.lesson,
            weights_step=unit.weights_step,
            weights_digest=weights_digest,
            example=answer.example,
            prompt=answer.prompt,
            answer=self._text(answer),
            prompt_ids=answer.prompt_ids,
            ids=answer.ids,
            logprobs=answer.logprobs,
            mask=answer.mask,
            finish=answer.finish,
            reward=answer.reward,
            used=not answer.reason,
            reason=answer.reason,
            note=answer.note,
        )
