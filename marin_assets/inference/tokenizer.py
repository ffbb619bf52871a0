"""The tokenizer of an exported model: it reads a text as the training did, and conversations by its chat template.

A special token that is written in a text or in a message is text. It is a token where the template writes it alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marin_assets.documents.caches.tokens import TokenizerFileError, read_tokenizer

OPEN, CLOSE = "\ufdd0", "\ufdd1"
"""Around the number of a special token that is written in a message. Unicode reserves them: no text has them."""
MARK = re.compile(f"{OPEN}(\\d+){CLOSE}")


class ModelTokenizer:
    """The tokenizer of a local Hugging Face folder."""

    def __init__(self, folder: str) -> None:
        """Raises FileNotFoundError, TokenizerFileError."""
        from levanter.tokenizers import load_tokenizer  # jax and Levanter take 3 s to import

        self._texts = read_tokenizer(folder)
        self._templates = read_tokenizer(folder, special_tokens=True)
        self.levanter = load_tokenizer(folder)
        """Levanter's, for what it does beside encoding."""
        self.stop_token_ids = stop_token_ids_of(folder) | ({self.eos_token_id} - {None})
        """Tokens at which the model ends an answer: EOS, and those of its generation_config.json."""
        added = self._texts.get_added_tokens_decoder()
        self._special = {token.content: id_ for id_, token in added.items() if token.special}
        longest_first = sorted(
            (token for token in added.values() if token.special), key=lambda token: -len(token.content)
        )
        self._written = re.compile("|".join(re.escape(token.content) for token in longest_first) or r"(?!)")
        self._of_template = re.compile("|".join(map(_with_its_spaces, longest_first)) or r"(?!)")

    @property
    def name_or_path(self) -> str:
        return str(self.levanter.name_or_path)

    @property
    def bos_token_id(self) -> int | None:
        return self.levanter.bos_token_id

    @property
    def eos_token_id(self) -> int | None:
        return self.levanter.eos_token_id

    @property
    def first_token_id(self) -> int:
        """The token before a text: BOS, as in training documents, or EOS if the model has no BOS."""
        first = self.eos_token_id if self.bos_token_id is None else self.bos_token_id
        if first is None:
            raise TokenizerFileError(
                f"The tokenizer at {self.name_or_path!r} has neither bos_token nor eos_token, expected one of them to "
                "begin a text with. Add it to its tokenizer_config.json."
            )
        return first

    @property
    def chat_template(self) -> str | None:
        return self.levanter.chat_template

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without BOS."""
        return list(self._texts.encode(text, add_special_tokens=False).ids)

    def encode_with_offsets(self, text: str) -> Any:
        """Return the library's Encoding of a text: ids, and the characters of each token as offsets."""
        return self._texts.encode(text, add_special_tokens=False)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return str(self._texts.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a conversation up to where the model answers. It has a chat template."""
        return self.encode_rendered(self.render_chat(messages))

    def render_chat(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True) -> str:
        """Return the text of a conversation, in which special tokens that a message has are marked."""
        marked = [self._all_marked(message) for message in messages]
        return str(
            self.levanter.apply_chat_template(marked, add_generation_prompt=add_generation_prompt, tokenize=False)
        )

    def _all_marked(self, value: Any) -> Any:
        """A message, in all of whose texts special tokens are marked."""
        if isinstance(value, str):
            return self.mark(value)
        if isinstance(value, Mapping):
            return {name: self._all_marked(part) for name, part in value.items()}
        return [self._all_marked(part) for part in value] if isinstance(value, list | tuple) else value

    def mark(self, text: str) -> str:
        """Mark the special tokens that are written in a text, so that `encode_rendered` reads them as text."""
        numbers = self._special
        return self._written.sub(lambda match: f"{OPEN}{numbers[match[0]]}{CLOSE}", text)

    def unmark(self, text: str) -> str:
        """Return a text as it was before `mark`."""
        return MARK.sub(lambda match: str(self._texts.id_to_token(int(match[1]))), text)

    def encode_rendered(self, text: str) -> list[int]:
        """Return the tokens of a rendered text: a special token is that token, unless it is marked."""
        if OPEN not in text:
            return list(self._templates.encode(text, add_special_tokens=False).ids)
        ids: list[int] = []
        end = 0
        for match in self._of_template.finditer(text):
            ids += self._encode_marked(text[end : match.start()])
            ids.append(self._special[match[match.lastindex or 0]])
            end = match.end()
        return ids + self._encode_marked(text[end:])

    def _encode_marked(self, text: str) -> list[int]:
        return self.encode(self.unmark(text)) if text else []


def stop_token_ids_of(folder: str) -> set[int | None]:
    """The tokens at which a model stops, by its generation_config.json; empty if it has none.

    Raises TokenizerFileError for a damaged one.
    """
    file = Path(folder, "generation_config.json")
    try:
        ids = json.loads(file.read_text())["eos_token_id"] if file.exists() else None
    except KeyError:
        ids = None
    except (ValueError, TypeError) as error:
        raise TokenizerFileError(
            f"{str(file)!r} is damaged ({error}), expected a JSON object. Download it again, or remove it."
        ) from error
    return set(ids) if isinstance(ids, list) else {ids} - {None}


def _with_its_spaces(token: Any) -> str:
    """A pattern for a special token, with the whitespace beside it that it takes."""
    before, after = (r"\s*" if takes else "" for takes in (token.lstrip, token.rstrip))
    return f"{before}({re.escape(token.content)}){after}"
