"""Chats as tokens, with a mask of what is learnt.

Each part of a chat (`templates.py`) is encoded by itself, as Levanter and Hugging Face do: no token crosses the border
between what is read and what is learnt. Special tokens are those that the template writes; the tokenizer adds none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.tokenize.chat.messages import ASSISTANT, USER, Messages, NotAChat, is_learnt
from marin_assets.stages.tokenize.chat.templates import ChatTemplate, TemplateError
from marin_assets.stages.tokenize.tokenize import load_tokenizer, tokenizer_digest

PROBE = [{"role": USER, "content": "question"}, {"role": ASSISTANT, "content": "answer"}]


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
        self.metadata: dict[str, Any] = {
            "tokenizer_sha256": tokenizer_digest(tokenizer_path),
            "vocab_size": self._tokenizer.get_vocab_size(),
            "chat_template": chat_template,
            "chat_template_sha256": hashlib.sha256(chat_template.encode()).hexdigest(),
            "stop_token_id": self.stop_token_id,
        }

    def encode(self, chats: Sequence[Messages]) -> list[Encoded | NotAChat]:
        """Return each chat's tokens, or why it has none: template_refused, unknown_weight, special_token."""
        rendered = [self._parts(messages) for messages in chats]
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

    def prompt_matches(self, messages: Messages, encoded: Encoded) -> bool:
        """Whether the tokens before the last answer that is learnt are those that a prompt for that answer gets."""
        last = max(i for i, message in enumerate(messages) if is_learnt(message))
        try:
            prompt = self._tokenizer.encode(self._template.prompt(messages[:last]), add_special_tokens=False).ids
        except NotAChat:  # a template may want a question first
            return False
        starts = [i for i, learnt in enumerate(encoded.mask) if learnt and not (i and encoded.mask[i - 1])]
        return bool(starts) and encoded.ids[: starts[-1]] == prompt

    def _parts(self, messages: Messages) -> list[tuple[str, bool]] | NotAChat:
        # The text of a special token in a message would become that token: an answer could be ended by a question.
        if self._special.pattern and any(self._special.search(message["content"]) for message in messages):
            return NotAChat("special_token")
        try:
            return self._template.parts(messages)
        except NotAChat as reason:
            return reason

    def _probe(self, tokenizer_path: str, bos: int | None, special: set[int]) -> int:
        """Render one chat. Returns the token that ends an answer; raises TemplateError if the template has a trap."""
        [encoded] = self.encode([PROBE])
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
