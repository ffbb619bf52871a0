"""A row as a document of a conversation or of a preference, or the reason why it is none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import BadRow
from marin_assets.documents.chats.adapters import Adapter
from marin_assets.documents.chats.messages import TOOL, Messages, messages_of
from marin_assets.documents.chats.not_a_chat import EMPTY, NotAChat
from marin_assets.documents.chats.tools import Tools, is_shallow, tools_of
from marin_assets.stages.transform.conversations.fields import ALL, ConversationError, RowFields, function_of
from marin_assets.stages.transform.conversations.structure import Replacer, structured
from marin_assets.stages.transform.ingest import given_id, json_value

DIGEST_BYTES = 16
Content = dict[str, Any]
"""{"messages"}, or {"chosen", "rejected"}; and "tools", if it has some."""


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A document, the hash of its content, and the keys of its row that were not read."""

    document: dict[str, Any]
    digest: bytes
    unread: set[str]


class RowReader:
    """Reads rows by the config of a stage."""

    def __init__(
        self, config: RowFields, adapter: Adapter[Any], content_of: Callable[[Any], dict[str, Messages]]
    ) -> None:
        """`content_of` returns the content of what the adapter reads, with checks of its own."""
        self._config, self._adapter, self._content_of = config, adapter, content_of
        self._replaced = Replacer(config.replacements)

    def read(self, row: Mapping[str, Any] | BadRow) -> ReadRow:
        """Return the row as a document. Raises NotAChat with the reason why it is none."""
        if isinstance(row, BadRow):
            raise NotAChat(row.reason)
        config = self._config
        content: Content = dict(self._content_of(self._adapter.read(row)))
        if tools := self._tools(row, content):
            content["tools"] = tools
        digest = digest_of(content)
        metadata = self._metadata(row)
        id = digest.hex() if config.id_column is None else given_id(row.get(config.id_column))
        if id is None:
            raise NotAChat("no_id")
        unread = self._adapter.unread(row) - {config.tools_column, config.id_column} - set(metadata)
        document = {"id": id, **content, "source": config.source, "metadata": metadata}
        return ReadRow(document, digest, unread)

    def chat(self, messages: Messages) -> Messages:
        """Return the messages as the config wants them. Raises NotAChat."""
        return structured(self._replaced(messages), alternation=self._config.alternation, end=self._config.end)

    def _tools(self, row: Mapping[str, Any], content: Content) -> Tools:
        if self._config.tools == "keep":
            return tools_of(row.get(self._config.tools_column))
        if any(message["role"] == TOOL for messages in content.values() for message in messages):
            raise NotAChat("tool_calls")
        return []

    def _metadata(self, row: Mapping[str, Any]) -> dict[str, Any]:
        names = self._config.metadata_columns
        if names == ALL:
            read = {self._config.id_column, self._config.tools_column, self._config.system_column}
            read.update(self._adapter.keys, self._adapter.turns)
            names = tuple(name for name in row if name not in read)
        if not all(is_shallow(row[name]) for name in names if name in row):
            raise NotAChat("bad_metadata")
        try:
            metadata = {name: json_value(row[name]) for name in names if name in row}
            json.dumps(metadata, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise NotAChat("invalid_unicode") from error
        except TypeError as error:
            raise NotAChat("bad_metadata") from error
        return metadata


def digest_of(content: Content) -> bytes:
    """Return a hash of the content's canonical JSON: sorted keys, no blanks. Raises NotAChat: invalid_unicode."""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    try:
        return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise NotAChat("invalid_unicode") from error


def own_adapter(reference: str, config: RowFields, read: Callable[[Mapping[str, Any]], Any]) -> Adapter[Any]:
    """Return the adapter of a function of one's own, of which `read` makes what the stage's adapters return."""
    function = function_of(reference)

    def read_row(row: Mapping[str, Any]) -> Any:
        try:
            made = function(dict(row))
        except NotAChat:
            raise
        except Exception as error:  # of foreign code: the sentence names it, and the row
            raise ConversationError(
                f"The adapter {reference!r} failed with {type(error).__name__}: {error}, for the row "
                f"{dict(row)!r:.200}. Correct it, or return None for a row that is left out."
            ) from error
        if made in EMPTY:
            raise NotAChat("left_out")
        return read(made)

    return _OwnAdapter(read=read_row, rules=config.rules())


class _OwnAdapter(Adapter[Any]):
    """An adapter of which nobody knows the keys that it reads."""

    def unread(self, row: Mapping[str, Any]) -> set[str]:
        return set()


def own_messages(made: Any, config: RowFields, reference: str) -> Messages:
    """Return the messages of a list that a function returned. Raises ConversationError for another value."""
    if not isinstance(made, list):
        raise ConversationError(
            f"The adapter {reference!r} returned {made!r:.100}, expected a list of messages with role and content. "
            "Correct it."
        )
    return messages_of(made, rules=config.rules())
