"""Token caches as Levanter writes them, and as Marin does: one shard after the other, in one ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_levanter_cache(folder: Path, tokenizer: str, texts: list[str], *, sharded: bool = False) -> str:
    """Write one split of documents in two shards. Returns its folder."""
    from levanter.data.sharded_datasource import UrlDataSource
    from levanter.data.text import TextLmDatasetFormat, build_lm_dataset_cache
    from levanter.store.cache import CacheMetadata, consolidate_shard_cache_ledgers, write_levanter_cache
    from levanter.tokenizers import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    if not sharded:
        rows = folder.parent / f"{folder.name}-rows"
        rows.mkdir(parents=True)
        for i in range(2):
            (rows / f"{i}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[i::2]))
        source = UrlDataSource([str(rows / f"{i}.jsonl") for i in range(2)])
        build_lm_dataset_cache(str(folder), source, TextLmDatasetFormat(), loaded)
        return str(folder)
    processor: Any = TextLmDatasetFormat().build_preprocessor(loaded)
    parts = [f"{folder}/part-{i:05}-of-00002" for i in range(2)]
    for i, part in enumerate(parts):
        write_levanter_cache(iter(processor([{"text": text} for text in texts[i::2]])), part, metadata={})
    consolidate_shard_cache_ledgers(parts, str(folder), processor.output_exemplar, CacheMetadata({}))
    return str(folder)
