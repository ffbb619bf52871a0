"""Calls of a model whose results are kept in a journal, so that a killed step resumes after them.

Greedy results do not depend on where a step was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from marin_assets.inference.decoder import Completion, Prompt
from marin_assets.inference.engine import Endpoint, Engine, check_engine
from marin_assets.inference.generator import SCORING_ROOM, Generator, TextGenerator, TextPrompt, open_generator
from marin_assets.inference.journal import FOLDER, Journal
from marin_assets.stages.judge.conversations import JudgeError, Message
from marin_resources.step_api.progress import report_step
from marin_resources.storage.files import remove_folder
from marin_resources.storage.paths import join


class ModelCalls:
    """A model with a journal. The results are in `rows`, by the keys of the calls."""

    def __init__(self, generator: Generator | TextGenerator, journal: Journal, role: str) -> None:
        """`role` is the model's in a sentence: "judge" or "model". A TextGenerator is a model that gets messages."""
        self.generator, self._journal, self._role = generator, journal, role

    @property
    def rows(self) -> Mapping[str, Mapping[str, Any]]:
        return self._journal.rows

    @property
    def window(self) -> int | None:
        """Tokens of a prompt and its answer; None if they cannot be counted here."""
        return None if isinstance(self.generator, TextGenerator) else self.generator.max_length

    @property
    def _by_tokens(self) -> Generator:
        assert isinstance(self.generator, Generator)  # `compare_answers` refuses log-probabilities of others
        return self.generator

    def prompts(
        self, chats: Mapping[str, Sequence[Message]], max_tokens: int, **settings: Any
    ) -> dict[str, Prompt | TextPrompt]:
        """The prompts of conversations, but of those that do not fit in the window. Raises JudgeError.

        `settings` are fields of Prompt. Messages whose tokens cannot be counted here are left to the endpoint.
        """
        if isinstance(self.generator, TextGenerator):
            return {
                key: TextPrompt(text=tuple(messages), max_tokens=max_tokens, **settings)
                for key, messages in chats.items()
            }
        return {
            key: Prompt(ids=ids, max_tokens=max_tokens, **settings)
            for key, ids in self.scored(chats, max_tokens).items()
        }

    def scored(self, chats: Mapping[str, Sequence[Message]], max_tokens: int = 0) -> dict[str, tuple[int, ...]]:
        """The tokens of conversations up to the model's answer, of those that fit in the window beside `max_tokens`, or
        beside one that is scored. Raises JudgeError for a tokenizer without a chat template."""
        room = self._by_tokens.max_length - (max_tokens or 1 + SCORING_ROOM)
        tokens = {key: self._ids(messages) for key, messages in chats.items()}
        return {key: ids for key, ids in tokens.items() if len(ids) <= room}

    def _ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        tokenizer = self._by_tokens.tokenizer
        if not tokenizer.chat_template:
            raise JudgeError(
                f"The tokenizer of the {self._role} has no chat template, expected a model that chats. Give one that "
                "default_sft has trained, or add chat_template to its tokenizer_config.json."
            )
        return tuple(tokenizer.encode_chat(messages))

    def tokens_of(self, letter: str) -> list[int]:
        """The tokens that begin an answer with this letter: with and without a space before it.

        Raises JudgeError for a tokenizer that has neither.
        """
        encoded = [self._by_tokens.tokenizer.encode(text) for text in (letter, f" {letter}")]
        if tokens := sorted({ids[0] for ids in encoded if len(ids) == 1}):
            return tokens
        raise JudgeError(
            f"The judge's tokenizer has no token for {letter!r} alone, so log-probabilities show no verdict. Pass "
            'verdict="text".'
        )

    def complete(self, prompts: Mapping[str, Prompt | TextPrompt]) -> None:
        """Complete those that have no row: {"text", "tokens", "finish"}."""
        keys = [key for key in prompts if key not in self.rows]

        def take(number: int, completion: Completion) -> None:
            facts = {"text": completion.text, "tokens": completion.tokens, "finish": completion.finish}
            self._add(keys[number], facts)

        with self._saved():
            generator: Any = self.generator  # tokens or texts, as `prompts` made them
            generator.run((prompts[key] for key in keys), take)

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
            self._by_tokens.score_last(((*prompts[key], token) for key, token in calls), take)

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
    engine: Engine | Endpoint | None,
    model_path: str | None,
    output_path: str,
    save_every_s: float | None,
    role: str = "judge",
) -> Iterator[ModelCalls]:
    """The model for the block; without a path that of an endpoint, by its messages. Raises EngineError, ModelError."""
    if engine is not None:
        check_engine(engine)
    journal = Journal(output_path, "calls", save_every_s=save_every_s)
    with open_generator(engine, model_path) as generator:
        yield ModelCalls(generator, journal, role)


def require_model(model_path: str | None, engine: Engine | Endpoint | None) -> None:
    """Raise JudgeError for a model that is nowhere."""
    if model_path is None and not isinstance(engine, Endpoint):
        raise JudgeError(
            f"The engine is {engine!r}, and no folder of a model is given, expected an Endpoint, or the folder of an "
            "export. Give one of them."
        )


def remove_journal(output_path: str) -> None:
    """Remove the journal: the output is written."""
    with suppress(FileNotFoundError):
        remove_folder(join(output_path, FOLDER))
