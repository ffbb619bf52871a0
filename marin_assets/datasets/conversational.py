"""Known data sets of chats, of trees of messages and of preferences, and their steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.datasets.dataset import Dataset
from marin_assets.defaults.conversations import default_conversations, default_preferences, default_threads
from marin_assets.defaults.data import default_tokenize_chats, default_tokenize_preferences
from marin_assets.step.step import Step
from marin_assets.step.values import InputName


@dataclass(frozen=True, kw_only=True)
class Chats(Dataset):
    """A data set of chats, or of instructions with answers."""

    adapter: str = "openai"
    """The shape of its rows: see docs/reference/chats.md."""

    def conversations(self, **fields: Any) -> Step:
        """Return the step "conversations/<name>", as `default_conversations` makes it: equal ones once, in order."""
        return default_conversations(self, **fields)

    def tokenized(
        self,
        tokenizer: Step | InputName,
        *,
        max_seq_len: int,
        template: str = "plain",
        validation_fraction: float | None = None,
    ) -> Step:
        """Return the step "tokenized/<name>": caches of its chats, as `default_tokenize_chats` makes them."""
        return default_tokenize_chats(
            self.name,
            self.rows(),
            tokenizer,
            max_seq_len=max_seq_len,
            adapter=self.adapter,
            template=template,
            validation_fraction=validation_fraction,
        )


@dataclass(frozen=True, kw_only=True)
class MessageTrees(Chats):
    """A data set whose rows are single messages of trees, as OpenAssistant's: its threads are chats."""

    def rows(self, **fields: Any) -> Step:
        """Return the step "rows/<name>", its threads as rows of chats, as `default_threads` makes it.

        `fields` are those of ThreadsConfig: paths="all" takes all threads of a tree in place of the best one,
        languages=("en",) the trees of a language. A message that reviewers refused is left out, with those below it.
        """
        return default_threads(self.name, self.raw(), **{"review_column": "review_result", **fields})

    def conversations(self, *, paths: str = "best", languages: tuple[str, ...] = (), **fields: Any) -> Step:
        """Return the step "conversations/<name>": its threads, with ids, and with tree and language as metadata.

        `paths` and `languages` are those of `rows`, other `fields` those of ConversationsConfig.
        """
        threads = self.rows(paths=paths, languages=languages)
        kept = {"id_column": "id", "metadata_columns": ("tree", "language"), **fields}
        return default_conversations(self.name, threads, adapter=self.adapter, **kept)


@dataclass(frozen=True, kw_only=True)
class Preferences(Dataset):
    """A data set of pairs of answers, one of which was preferred."""

    adapter: str = "chats"
    """The shape of its rows: see docs/reference/conversations.md."""

    def preferences(self, **fields: Any) -> Step:
        """Return the step "preferences/<name>", as `default_preferences` makes it: equal ones once, in order."""
        return default_preferences(self.name, self.rows(), adapter=self.adapter, **fields)

    def tokenized(
        self,
        tokenizer: Step | InputName,
        *,
        max_seq_len: int,
        template: str = "plain",
        validation_fraction: float | None = None,
    ) -> Step:
        """Return the step "tokenized/<name>": caches of its pairs, as `default_tokenize_preferences` makes them."""
        return default_tokenize_preferences(
            self.name,
            self.rows(),
            tokenizer,
            max_seq_len=max_seq_len,
            adapter=self.adapter,
            template=template,
            validation_fraction=validation_fraction,
        )
