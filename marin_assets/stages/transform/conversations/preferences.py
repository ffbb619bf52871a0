"""Convert rows of preferences to pairs of conversations, as training reads them.

In:  files of rows, lines of JSON or parquet, in one of the shapes of preferences (`documents/chats/preferences.py`), or
     in one of your own.
Out: preferences, file for file under the same names with `.jsonl.zst`: {id, chosen, rejected, source, metadata}, and
     "tools" if the row has definitions of some. Both sides are lists of messages, equal but for their last answer.
     `tokenize_preferences` reads them without an adapter.

Each row is a preference or rejected for one reason: records = preferences + rejected. A preference that occurs twice is
kept once. A damaged file fails the stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.chats.adapters import Adapter
from marin_assets.documents.chats.preferences import PAIR_FORMS, Pair, Pairs, checked, pair_adapter_of
from marin_assets.stages.transform.conversations.fields import ConversationError, RowFields, check_fields
from marin_assets.stages.transform.conversations.read_rows import RowReader, own_adapter, own_messages
from marin_assets.stages.transform.conversations.write_rows import write_all
from marin_assets.step.config_check import check_config
from marin_assets.step.values import versioned
from marin_resources.hardware.resources import Resources

KINDS = ("jsonl",)


@dataclass(frozen=True, kw_only=True)
class PreferencesConfig(RowFields):
    adapter: str | Pairs = versioned("chats")
    """The shape of the rows: a name, one of your own, such as versioned(Pairs(prompt="question", chosen="better",
    rejected="worse")), or "module:function", a function of a row that returns {"chosen", "rejected"}, two lists of
    messages, or None to leave it out."""

    @property
    def kept_name(self) -> str:
        return "preferences"

    @property
    def more_reasons(self) -> tuple[str, ...]:
        return ("different_prompts", "equal_answers")

    def reader(self) -> RowReader:
        """Return the reader of the rows."""

        def content_of(pair: Pair) -> dict[str, Any]:
            chosen, rejected = checked(*map(reader.chat, pair))
            return {"chosen": chosen, "rejected": rejected}

        reader = RowReader(self, self._adapter(), content_of)
        return reader

    def _adapter(self) -> Adapter[Pair]:
        if not isinstance(self.adapter, str):
            return pair_adapter_of(self.adapter, self.rules())
        if self.adapter in PAIR_FORMS:
            return pair_adapter_of(PAIR_FORMS[self.adapter], self.rules())
        return own_adapter(self.adapter, self, self._own_pair)

    def _own_pair(self, made: Any) -> Pair:
        if not isinstance(made, Mapping) or set(made) != {"chosen", "rejected"}:
            raise ConversationError(
                f"The adapter {self.adapter!r} returned {made!r:.100}, expected {{'chosen': [messages], 'rejected': "
                "[messages]}. Correct it."
            )
        chosen, rejected = (own_messages(made[side], self, str(self.adapter)) for side in ("chosen", "rejected"))
        return chosen, rejected

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def preferences(config: PreferencesConfig) -> dict[str, Any]:
    """Convert rows to preferences.

    Returns records, preferences, rejected, each rejected_<reason>, records_unaccounted, unread_<key> (rows), and
    ignored_files if any exist. Raises ConversationError and ShardError as `conversations`.
    """
    _check(config)
    return write_all(config)


def _check(config: PreferencesConfig) -> None:
    check_fields(config, PAIR_FORMS)
