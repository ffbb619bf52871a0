"""Chats as tokens, with a mask of what is learnt.

Each part of a chat (`templates.py`) is encoded by itself, as Levanter and Hugging Face do: no token crosses the border
between what is read and what is learnt. Special tokens are those that the template writes; the tokenizer adds none.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.documents.chats.messages import ASSISTANT, TOOL, USER, Messages, is_learnt
from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.documents.chats.tools import Tools, texts_of
from marin_assets.stages.tokenize.chat.templates import ChatTemplate, TemplateError
from marin_assets.stages.tokenize.tokenize import load_tokenizer, tokenizer_digest

PROBE = [{"role": USER, "content": "question"}, {"role": ASSISTANT, "content": "answer"}]
PROBE_FUNCTION = {"name": "probed_name", "arguments": {"probed_key": "probed_value"}}
PROBE_OF_TOOLS: Messages = [
    {"role": USER, "content": "question"},
    {"role": ASSISTANT, "content": "", "tool_calls": [{"type": "function", "function": PROBE_FUNCTION}]},
    {"role": TOOL, "content": "probed_result", "name": "probed_name"},
    {"role": ASSISTANT, "content": "answer"},
]
PROBE_TOOLS: Tools = [{"type": "function", "function": {"name": "probed_definition", "parameters": {"type": "object"}}}]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chat:
    """Messages, and the tools that they may call."""

    messages: Messages
    tools: Tools = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A chat: its tokens, and 1 for each one that is the assistant's."""

    ids: list[int]
    mask: list[int]


class ChatEncoder:
    """Encodes chats with the tokenizer of a folder and the text of a template."""

    def __init__(self, tokenizer_path: str, chat_template: str) -> None:
        """Raises TokenizeError for a folder without tokenizer, TemplateError for a template that does not suit it."""
        self._tokenizer, bos, eos = load_tokenizer(tokenizer_path)
        self._tokenizer.encode_special_tokens = False
        names = {id_: token for id_, token in self._tokenizer.get_added_tokens_decoder().items() if token.special}
        self._special = re.compile("|".join(re.escape(token.content) for token in names.values()))
        tokens = {
            name: "" if id_ is None else self._tokenizer.id_to_token(id_) for name, id_ in (("bos", bos), ("eos", eos))
        }
        self._template = ChatTemplate(chat_template, bos_token=tokens["bos"], eos_token=tokens["eos"])
        self.stop_token_id = self._probe(tokenizer_path, bos, set(names))
        self.renders_tools = self._renders_tools()
        self.metadata: dict[str, Any] = {
            "tokenizer_sha256": tokenizer_digest(tokenizer_path),
            "vocab_size": self._tokenizer.get_vocab_size(),
            "chat_template": chat_template,
            "chat_template_sha256": hashlib.sha256(chat_template.encode()).hexdigest(),
            "stop_token_id": self.stop_token_id,
        }

    def encode(self, chats: Sequence[Chat]) -> list[Encoded | NotAChat]:
        """Return each chat's tokens, or why it has none: template_refused, unknown_weight, special_token."""
        rendered = [self._parts(chat) for chat in chats]
        texts = [text for parts in rendered if isinstance(parts, list) for text, _ in parts]
        encodings = iter(self._tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        results: list[Encoded | NotAChat] = []
        for parts in rendered:
            if isinstance(parts, NotAChat):
                results.append(parts)
                continue
            encoded = Encoded([], [])
            for _, learnt in parts:
                ids = next(encodings).ids
                encoded.ids.extend(ids)
                encoded.mask.extend([int(learnt)] * len(ids))
            results.append(encoded)
        return results

    def prompt_matches(self, chat: Chat, encoded: Encoded) -> bool:
        """Whether the tokens before the last answer that is learnt are those that a prompt for that answer gets."""
        last = max(i for i, message in enumerate(chat.messages) if is_learnt(message))
        try:
            text = self._template.prompt(chat.messages[:last], chat.tools)
            prompt = self._tokenizer.encode(text, add_special_tokens=False).ids
        except NotAChat:  # a template may want a question first
            return False
        starts = [i for i, learnt in enumerate(encoded.mask) if learnt and not (i and encoded.mask[i - 1])]
        return bool(starts) and encoded.ids[: starts[-1]] == prompt

    def _parts(self, chat: Chat) -> list[tuple[str, bool]] | NotAChat:
        # The text of a special token in a message would become that token: an answer could be ended by a question.
        if self._special.pattern and any(map(self._special.search, texts_of(chat.messages, chat.tools))):
            return NotAChat("special_token")
        try:
            return self._template.parts(chat.messages, chat.tools)
        except NotAChat as reason:
            return reason

    def _probe(self, tokenizer_path: str, bos: int | None, special: set[int]) -> int:
        """Render one chat. Returns the token that ends an answer; raises TemplateError if the template has a trap."""
        [encoded] = self.encode([Chat(PROBE)])
        if isinstance(encoded, NotAChat):
            raise TemplateError(
                f"The chat template cannot render {PROBE!r}: {encoded.__cause__}. Use messages, bos_token, eos_token "
                "and add_generation_prompt alone."
            )
        learnt = [token for token, is_learnt in zip(encoded.ids, encoded.mask, strict=True) if is_learnt]
        if not learnt:
            raise TemplateError(
                "The chat template has no answer within {% generation %}, so nothing would be learnt. Put the "
                "assistant's content and its end between {% generation %} and {% endgeneration %}."
            )
        if bos is not None and encoded.ids[0] != bos:
            raise TemplateError(
                f"The chat template does not begin with the bos_token of {tokenizer_path!r}, expected it before the "
                "first message, as before every document. Begin the template with {{ bos_token }}."
            )
        if learnt[-1] not in special:
            end = self._tokenizer.id_to_token(learnt[-1])
            raise TemplateError(
                f"The chat template ends an answer with {end!r}, which is no special token of {tokenizer_path!r}, so "
                "the model would not learn to stop. End {% generation %} with {{ eos_token }}, or use a tokenizer that "
                "has the template's tokens."
            )
        return learnt[-1]

    def _renders_tools(self) -> bool:
        """Whether the template renders definitions, calls, which it must do as a part of the answer, and results."""
        if not self._template.has_tools:
            return False
        parts = self._parts(Chat(PROBE_OF_TOOLS, PROBE_TOOLS))
        rendered = [] if isinstance(parts, NotAChat) else parts
        learnt, read = ("".join(text for text, is_answer in rendered if is_answer is side) for side in (True, False))
        shown = all(text in learnt for text in ("probed_name", "probed_key", "probed_value"))
        if shown and "probed_result" in read and "probed_definition" in read:
            return True
        log.warning(
            "The chat template has tool_calls, and does not render calls within {% generation %} with definitions and "
            "results of tools outside of it: chats with tools are rejected"
        )
        return False
