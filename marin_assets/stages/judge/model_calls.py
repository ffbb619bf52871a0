"""Calls of a model whose results are kept in a journal, so that a killed step resumes after them.

Greedy results do not depend on where a step was interrupted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from marin_assets.inference.decoder import Completion, Prompt
from marin_assets.inference.engine import Engine, check_engine, reads_weights
from marin_assets.inference.generator import SCORING_ROOM, Generator, open_generator
from marin_assets.inference.journal import FOLDER, Journal
from marin_assets.inference.local_copy import WEIGHTS, copy_to_local
from marin_assets.stages.judge.conversations import JudgeError, Message
from marin_resources.step_api.progress import report_step
from marin_resources.storage.files import remove_folder
from marin_resources.storage.paths import join


class ModelCalls:
    """A model with a journal. The results are in `rows`, by the keys of the calls."""

    def __init__(self, generator: Generator, journal: Journal, role: str) -> None:
        """`role` is the model's in a sentence: "judge" or "model"."""
        self.generator, self._journal, self._role = generator, journal, role

    @property
    def rows(self) -> Mapping[str, Mapping[str, Any]]:
        return self._journal.rows

    def chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The tokens of a conversation up to the model's answer. Raises JudgeError without a chat template."""
        if not self.generator.tokenizer.chat_template:
            raise JudgeError(
                f"The tokenizer of the {self._role} has no chat template, expected a model that chats. Give one that "
                "default_sft has trained, or add chat_template to its tokenizer_config.json."
            )
        return tuple(self.generator.tokenizer.encode_chat(messages))

    def fits(self, ids: Sequence[int], max_tokens: int) -> bool:
        """Whether the window has room for a prompt and an answer; of 0 tokens: for the score of one behind it."""
        return len(ids) + (max_tokens or 1 + SCORING_ROOM) <= self.generator.max_length

    def tokens_of(self, letter: str) -> list[int]:
        """The tokens that begin an answer with this letter: with and without a space before it.

        Raises JudgeError for a tokenizer that has neither.
        """
        encoded = [self.generator.tokenizer.encode(text) for text in (letter, f" {letter}")]
        if tokens := sorted({ids[0] for ids in encoded if len(ids) == 1}):
            return tokens
        raise JudgeError(
            f"The judge's tokenizer has no token for {letter!r} alone, so log-probabilities show no verdict. Pass "
            'verdict="text".'
        )

    def complete(self, prompts: Mapping[str, Prompt]) -> None:
        """Complete those that have no row: {"text", "tokens", "finish"}."""
        keys = [key for key in prompts if key not in self.rows]

        def take(number: int, completion: Completion) -> None:
            facts = {"text": completion.text, "tokens": completion.tokens, "finish": completion.finish}
            self._add(keys[number], facts)

        with self._saved():
            self.generator.run((prompts[key] for key in keys), take)

    def score(self, prompts: Mapping[str, Sequence[int]], tokens: Sequence[int]) -> None:
        """Score, of those that have no row, each of `tokens` as the first of the answer: {"logprobs"}, in nats."""
        calls = [(key, token) for key in prompts if key not in self.rows for token in tokens]
        partial: dict[str, dict[int, float]] = {}

        def take(number: int, logprob: float) -> None:
            key, token = calls[number]
            scored = partial.setdefault(key, {})
            scored[token] = logprob
            if len(scored) == len(tokens):
                self._add(key, {"logprobs": [scored[token] for token in tokens]})
                del partial[key]

        with self._saved():
            self.generator.score_last(((*prompts[key], token) for key, token in calls), take)

    def _add(self, key: str, facts: Mapping[str, Any]) -> None:
        self._journal.add({"place": key, **facts})
        report_step(len(self.rows))

    @contextmanager
    def _saved(self) -> Iterator[None]:
        """Save the journal however the block ends."""
        try:
            yield
        finally:
            self._journal.save()


@contextmanager
def open_model(
    engine: Engine | None, model_path: str, output_path: str, save_every_s: float | None, role: str = "judge"
) -> Iterator[ModelCalls]:
    """The model for the block. Raises EngineError, ModelError."""
    if engine is not None:
        check_engine(engine)
    journal = Journal(output_path, "calls", save_every_s=save_every_s)
    but = () if reads_weights(engine) else WEIGHTS
    with (
        tempfile.TemporaryDirectory(prefix="judge-") as folder,
        open_generator(engine, copy_to_local(model_path, folder, but=but), model_path) as generator,
    ):
        yield ModelCalls(generator, journal, role)


def remove_journal(output_path: str) -> None:
    """Remove the journal: the output is written."""
    with suppress(FileNotFoundError):
        remove_folder(join(output_path, FOLDER))
