"""The yield of a crawl: how many of its pages are left after each of its stages.

In:  outcomes of `fetch_pages`, and the documents of each stage after it, in order, whole pages each.
Out: yield.json, {"format_version", "outcomes": {outcome: addresses}, "stages": [{"name", "pages", "bytes",
     "of_fetched", "of_before"}]}; yield.md, the same as a table to read. With a tokenizer each stage has tokens too.

The rejections within a stage are in its own waterfall (`consolidate`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from marin_assets.documents import BadRow, document_files, document_shards, page_of, read_documents, read_rows
from marin_assets.documents.caches.tokens import token_counter
from marin_assets.step.values import THIS_OUTPUT_PATH
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("json",)

FORMAT_VERSION = 1
FETCHED = "fetched"


class YieldError(MarinError, ValueError):
    """Stages that are not those of one crawl: one sentence."""


@dataclass(frozen=True, kw_only=True)
class CrawlStage:
    """The documents that are left after a stage."""

    name: str
    documents_path: str


@dataclass(frozen=True, kw_only=True)
class CrawlYieldConfig:
    outcomes_path: str
    """Outcomes of a crawl."""
    stages: Sequence[CrawlStage]
    """The stages after the crawl, in their order."""
    tokenizer_path: str | None = None
    """Folder of a tokenizer; None counts no tokens."""
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class YieldShard:
    """Config of a shard of `count_stage`."""

    stage: str
    tokenizer_path: str | None


def crawl_yield(config: CrawlYieldConfig) -> dict[str, Any]:
    """Count the pages of a crawl that are left after each of its stages.

    Returns addresses, fetched, each pages_<stage> and, of the fetched pages, share_<stage>; with a tokenizer each
    tokens_<stage>. Raises YieldError for a stage with more pages than the one before.
    """
    names = [stage.name for stage in config.stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise YieldError(f"stages has two with the name {twice!r}, expected one of each. Rename one.")
    outcomes = Counter[str]()
    for file in document_files(config.outcomes_path).shards:
        for _, row in read_rows(file.path):
            outcomes["bad_row" if isinstance(row, BadRow) else str(row.get("outcome"))] += 1
    if not outcomes[FETCHED]:
        raise YieldError(
            f"{config.outcomes_path!r} has no row with the outcome 'fetched'. Pass the outcomes of fetch_pages."
        )
    counts = map_shards(count_stage, _shards(config), output_path=config.output_path)
    stages = _stages(config, counts, outcomes[FETCHED])
    content = {"format_version": FORMAT_VERSION, "outcomes": dict(sorted(outcomes.items())), "stages": stages}
    write_json(join(config.output_path, "yield.json"), content)
    write_bytes(join(config.output_path, "yield.md"), _table(outcomes, stages).encode())
    result: dict[str, Any] = {"addresses": outcomes.total(), FETCHED: outcomes[FETCHED]}
    for stage in stages:
        result |= {f"pages_{stage['name']}": stage["pages"], f"share_{stage['name']}": stage["of_fetched"]}
        result |= {f"tokens_{stage['name']}": stage["tokens"]} if "tokens" in stage else {}
    return result


def _shards(config: CrawlYieldConfig) -> list[FileShard]:
    tokenizer = [] if config.tokenizer_path is None else [folder_state(config.tokenizer_path)]
    shards = []
    for stage in config.stages:
        counting = YieldShard(stage=stage.name, tokenizer_path=config.tokenizer_path)
        documents = document_files(stage.documents_path)
        shards += document_shards(documents, join(config.output_path, stage.name), counting, also_read=tokenizer)
    return [replace(shard, outputs=()) for shard in shards]  # their counts are in their notes


def count_stage(shard: FileShard) -> Counts:
    """Count the documents of a group of files. Returns <stage> TAB pages, bytes and, with a tokenizer, tokens."""
    count_tokens = token_counter(shard.config.tokenizer_path) if shard.config.tokenizer_path else None
    counts = Counter(pages=0, bytes=0)
    for file in shard.inputs:
        last = ""
        for document in read_documents(file.path):
            counts["pages"] += page_of(document) != last
            last = page_of(document)
            counts["bytes"] += len(document.text.encode())
            if count_tokens is not None:
                counts["tokens"] += count_tokens([document.text])[0]
    return {f"{shard.config.stage}\t{name}": count for name, count in counts.items()}


def _stages(config: CrawlYieldConfig, counts: Counts, fetched: int) -> list[dict[str, Any]]:
    stages: list[dict[str, Any]] = []
    before, name_before = fetched, FETCHED
    for name in (stage.name for stage in config.stages):
        units = {key.partition("\t")[2]: count for key, count in counts.items() if key.partition("\t")[0] == name}
        pages = int(units["pages"])
        if pages > before:
            raise YieldError(
                f"The stage {name!r} has {pages:,} pages, and {name_before!r} before it {before:,}. Pass the stages "
                "of one crawl, in their order."
            )
        shares = {"of_fetched": pages / fetched, "of_before": pages / before if before else 0.0}
        stages.append({"name": name, **units, **shares})
        before, name_before = pages, name
    return stages


def _table(outcomes: Counter[str], stages: list[dict[str, Any]]) -> str:
    addresses = outcomes.total()
    lines = ["| outcome | addresses | share |", "|---|---|---|"]
    lines += [f"| {name} | {n:,} | {n / addresses:.1%} |" for name, n in outcomes.most_common()]
    lines += ["", "| stage | pages | of fetched | of the stage before | bytes |", "|---|---|---|---|---|"]
    lines.append(f"| {FETCHED} | {outcomes[FETCHED]:,} | 100.0% | | |")
    for stage in stages:
        shares = f"{stage['of_fetched']:.1%} | {stage['of_before']:.1%}"
        lines.append(f"| {stage['name']} | {stage['pages']:,} | {shares} | {stage['bytes']:,} |")
    return "\n".join([*lines, ""])
