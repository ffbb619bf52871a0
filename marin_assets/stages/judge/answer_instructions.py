"""Have a model answer instructions, turn by turn, by its chat template.

In:  conversations, of which the texts of the user are taken (`conversations.py`); the folder of a Hugging Face export.
Out: conversations with the model's answers, in their order, in one shard: {id, messages, source, metadata}. The
     metadata have category, reference and difficulty of the instruction, and `generated`, for each answer the number of
     its tokens, and whether it ended by itself ("stop") or at its limit ("length").

The prompt of a later turn has the model's own answers to the earlier ones. A prompt that does not fit in the window is
not cut: the conversation ends with the text of the user, without an answer, and is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import shard_name, write_rows
from marin_assets.inference.decoder import Prompt
from marin_assets.inference.endpoint.client import STOPS
from marin_assets.inference.engine import Endpoint, Engine
from marin_assets.inference.generator import TextPrompt
from marin_assets.stages.judge.conversations import Conversation, JudgeError, read_conversations
from marin_assets.stages.judge.model_calls import ModelCalls, open_model, remove_journal, require_model
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.paths import join

KINDS = ("jax",)


@dataclass(frozen=True, kw_only=True)
class AnswerInstructionsConfig:
    model_path: str | None
    """Folder of a Hugging Face export; None: an endpoint's model, which gets messages."""
    instructions_path: str
    output_path: str = THIS_OUTPUT_PATH
    max_tokens: int = versioned(1024)
    """Most tokens of an answer."""
    temperature: float = versioned(0.0)
    """Divides the logits; at 0 the likeliest token is taken."""
    seed: int = versioned(0)
    """Seed of the first instruction; that of each further one is greater by 1."""
    stop: tuple[str, ...] = versioned(())
    """Texts that end an answer, and are not in it."""
    engine: Engine | Endpoint | None = None
    """Engine that computes the answers: our JAX model in this process if None."""
    save_every_s: float | None = None
    """Interval between two saves of answers; None: as short as writing takes 2 % of the time."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def answer_instructions(config: AnswerInstructionsConfig) -> dict[str, Any]:
    """Answer.

    Returns instructions, answers, tokens, ended_by_limit, empty (answers without text) and too_long (conversations that
    end without an answer, as its prompt does not fit). Raises JudgeError for rows that are no instructions, one
    that occurs twice, a model without a chat template, or no prompt that fits; ModelError, EngineError.
    """
    _check(config)
    conversations = read_conversations(config.instructions_path)
    with open_model(config.engine, config.model_path, config.output_path, config.save_every_s, "model") as calls:
        too_long = _answer(config, conversations, calls)
        rows = [_row(conversation, _made(conversation, calls.rows)) for conversation in conversations.values()]
        window = calls.window
    made = [answer for row in rows for answer in row["metadata"]["generated"]]
    if not made:
        raise JudgeError(
            f"None of the {len(rows)} instructions fits in the window of {window} tokens beside an answer of "
            f"{config.max_tokens}. Lower max_tokens."
        )
    write_rows(join(config.output_path, shard_name(0, 1)), rows)
    remove_journal(config.output_path)
    texts = [message["content"] for row in rows for message in row["messages"] if message["role"] == "assistant"]
    return {
        "instructions": len(rows),
        "answers": len(made),
        "tokens": sum(answer["tokens"] for answer in made),
        "ended_by_limit": sum(answer["finish"] == "length" for answer in made),
        "empty": sum(not text.strip() for text in texts),
        "too_long": len(too_long),
    }


def _check(config: AnswerInstructionsConfig) -> None:
    if config.max_tokens < 1 or not 0 <= config.temperature < float("inf") or config.seed < 0:
        raise JudgeError(
            f"AnswerInstructionsConfig has max_tokens={config.max_tokens!r}, temperature={config.temperature!r} and "
            f"seed={config.seed!r}, expected at least 1, at least 0 and at least 0."
        )
    require_model(config.model_path, config.engine)
    stop: object = config.stop
    if not isinstance(stop, tuple | list) or not all(isinstance(text, str) and text for text in stop):
        raise JudgeError(
            f"AnswerInstructionsConfig has stop={stop!r}, expected a tuple of texts, none of them empty, such as "
            "('END',)."
        )
    if isinstance(config.engine, Endpoint) and len(config.stop) > STOPS:
        raise JudgeError(
            f"AnswerInstructionsConfig has {len(config.stop)} texts in stop, expected {STOPS} at most: OpenAI's API "
            "takes no more. Leave some out."
        )


def _answer(config: AnswerInstructionsConfig, conversations: Mapping[str, Conversation], calls: ModelCalls) -> set[str]:
    """Have all turns answered, the first of all, then the second. Returns the ids of those that end too early."""
    too_long: set[str] = set()
    for turn in range(max(len(conversation.turns) for conversation in conversations.values())):
        prompts: dict[str, Prompt | TextPrompt] = {}
        for number, (id_, conversation) in enumerate(conversations.items()):
            if turn >= len(conversation.turns) or id_ in too_long:
                continue
            answers = [answer["text"] for answer in _made(conversation, calls.rows)]
            fitting = calls.prompts(
                {_key(id_, turn): conversation.messages_to(turn, answers)},
                config.max_tokens,
                stops=tuple(config.stop),
                temperature=config.temperature,
                seed=config.seed + number,
            )
            prompts |= fitting
            if not fitting:
                too_long.add(id_)
        calls.complete(prompts)
    return too_long


def _made(conversation: Conversation, rows: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The answers that exist, turn by turn."""
    keys = (_key(conversation.id, turn) for turn in range(len(conversation.turns)))
    return [rows[key] for key in keys if key in rows]


def _key(id_: str, turn: int) -> str:
    return f"{turn}/{id_}"


def _row(conversation: Conversation, answers: list[Mapping[str, Any]]) -> dict[str, Any]:
    texts = [answer["text"] for answer in answers]
    last = min(len(texts), len(conversation.turns) - 1)
    messages = conversation.messages_to(last, texts)
    messages += [{"role": "assistant", "content": text} for text in texts[last:]]
    facts = {
        "category": conversation.category,
        "reference": list(conversation.references) or None,
        "difficulty": conversation.difficulty,
        "generated": [{name: answer[name] for name in ("tokens", "finish")} for answer in answers],
    }
    metadata = {name: value for name, value in facts.items() if value is not None}
    return {"id": conversation.id, "messages": messages, "source": "", "metadata": metadata}
