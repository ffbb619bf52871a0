"""What a cache says of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_assets.stages.train.formats import CHAT, DOCUMENT, format_of
from marin_resources.storage.files import write_json


@pytest.mark.parametrize("sides", [("train", "validation"), ("train",), ("validation",)])
def test_the_format_is_known_of_a_cache_that_is_only_validated_on_too(tmp_path: Path, sides: tuple[str, ...]) -> None:
    for side in sides:
        metadata = {"preprocessor_metadata": {"format": CHAT}}
        write_json(f"{tmp_path}/chats/{side}/shard_ledger.json", {"metadata": metadata})
        write_json(f"{tmp_path}/documents/{side}/shard_ledger.json", {"metadata": {}})
    assert format_of(f"{tmp_path}/chats") == CHAT
    assert format_of(f"{tmp_path}/documents") == DOCUMENT
