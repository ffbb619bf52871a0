"""Caches of documents and of chats as components of Levanter's data."""

from __future__ import annotations

from levanter.data.text import ChatLmDatasetFormat, DatasetComponent

from marin_assets.stages.train.formats import CHAT, ChatSpec, format_of


def component_of(path: str, chat: ChatSpec | None) -> DatasetComponent:
    """Return the component of the cache at `path`; chats are trained on as `chat` says."""
    if chat is None or format_of(path) != CHAT:
        return DatasetComponent(cache_dir=path)
    # the template is that of the tokenizer; a number of 1 packs none, True would be Levanter's 64
    return DatasetComponent(cache_dir=path, format=ChatLmDatasetFormat(pack=chat.chats_per_sequence))
