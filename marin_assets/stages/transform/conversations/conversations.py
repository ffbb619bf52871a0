"""Convert rows of any chat data set to conversations, as training reads them.

In:  files of rows, lines of JSON or parquet, in one of the shapes of chats (`documents/chats/forms.py`), or in one of
     your own.
Out: conversations, file for file under the same names with `.jsonl.zst`: {id, messages, source, metadata}, and "tools"
     if the row has definitions of some. `tokenize_chats` reads them without an adapter.

Each row is a conversation or rejected for one reason: records = conversations + rejected, rejected = sum of
rejected_<reason>. A conversation that occurs twice is kept once, the first in the order of files and rows. A damaged
file fails the stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.documents.chats.adapters import Adapter, adapter_of
from marin_assets.documents.chats.forms import FORMS, BestAnswer, Columns, PromptAndAnswer, Turns
from marin_assets.documents.chats.messages import Messages
from marin_assets.stages.transform.conversations.fields import RowFields, check_fields
from marin_assets.stages.transform.conversations.read_rows import RowReader, own_adapter, own_messages
from marin_assets.stages.transform.conversations.write_rows import write_all
from marin_assets.step.config_check import check_config
from marin_assets.step.values import versioned
from marin_resources.hardware.resources import Resources

KINDS = ("jsonl",)


@dataclass(frozen=True, kw_only=True)
class ConversationsConfig(RowFields):
    adapter: str | Turns | Columns | PromptAndAnswer | BestAnswer = versioned("openai")
    """The shape of the rows: a name, one of your own, such as versioned(Columns(prompt=("question",),
    answer="reply")), or "module:function", a function of a row that returns its messages, or None to leave it out."""

    @property
    def kept_name(self) -> str:
        return "conversations"

    @property
    def more_reasons(self) -> tuple[str, ...]:
        return ()

    def reader(self) -> RowReader:
        """Return the reader of the rows."""
        reader = RowReader(self, self._adapter(), lambda messages: {"messages": reader.chat(messages)})
        return reader

    def _adapter(self) -> Adapter[Messages]:
        if not isinstance(self.adapter, str):
            return adapter_of(self.adapter, self.rules())
        if self.adapter in FORMS:
            return adapter_of(FORMS[self.adapter], self.rules())
        return own_adapter(self.adapter, self, lambda made: own_messages(made, self, str(self.adapter)))

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def conversations(config: ConversationsConfig) -> dict[str, Any]:
    """Convert rows to conversations.

    Returns records, conversations, rejected, each rejected_<reason>, records_unaccounted, unread_<key> (rows), and
    ignored_files if any exist. Raises ConversationError for an unknown adapter, for too many rejected rows and for none
    that is kept, ShardError with the file for a damaged one.
    """
    _check(config)
    return write_all(config)


def _check(config: ConversationsConfig) -> None:
    check_fields(config, FORMS)
