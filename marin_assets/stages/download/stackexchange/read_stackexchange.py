"""Read the threads of dumps of Stack Exchange as pages: documents whose text is HTML.

In:  dumps of sites, 7z archives with Posts.xml, or that file; of a folder, a bucket or the web, or a list of their
     paths. Nothing is extracted to a disk.
Out: pages in shards "part-00000-of-00012.jsonl.zst", by site and the id of the question. A page's id is
     "<site>/<question>"; metadata has url, title, date, license and authors of all posts, score, tags, site, question
     and answers: of each id, score, accepted, date, author and license. `html_to_markdown` with
     `thread=ThreadContent()` reads pages.

Each row is a post of a page or rejected for one reason: posts = posts_kept + rejected, rejected = sum of
rejected_<reason>. A damaged row costs no other one. A cut file fails the stage, unless `allow_cut_files`.

A file is read once, as a stream, by one task: it cannot be entered in the middle. The posts then wait in hidden files
of the output, sorted by thread, and tasks join ranges of threads. Memory is bounded for any size of a dump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.documents.jsonl.lines import TooLong
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_input import DumpInput
from marin_assets.stages.download.crawl.damage import (
    CutError,
    count_cut,
    lose,
    reject,
    require_few_damages,
    require_some,
)
from marin_assets.stages.download.crawl.shards import CountProgress
from marin_assets.stages.download.crawl.two_phases import SourceShard, remove_hidden, remove_if_exists
from marin_assets.stages.download.stackexchange.dump_rows import read_rows
from marin_assets.stages.download.stackexchange.posts import DAMAGES, Post, post_of
from marin_assets.stages.download.stackexchange.runs import RunWriter, ranges, read_frames, read_range
from marin_assets.stages.download.stackexchange.sites import SUFFIXES, check_site, in_order, is_of_posts
from marin_assets.stages.download.stackexchange.threads import ORDERS, REASONS, ThreadRules, pages_of
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.values import versioned
from marin_resources.ray_tpu.shards.file_shards import FolderState, folder_state
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, stored_file
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("html",)

ARCHIVE = "https://archive.org/download/stackexchange/"
HIDDEN = ".marin/stackexchange"
OF_ROWS = ("other_type", "empty", "too_large", "low_score", "low_answer_score")
"""Reasons of a post alone: another type than question and answer; no text; more than max_post_bytes of it; a score
below min_question_score, or below min_answer_score."""


@dataclass(frozen=True, kw_only=True)
class ReadStackexchangeConfig(DumpInput):
    base_url: str = ARCHIVE
    """The place below which the paths of a list are."""
    site: str = versioned("")
    """The host of the site of all files, such as "dba.stackexchange.com"; "": by the names of the files."""
    min_question_score: int | None = versioned(10)
    """Questions of a lower score are rejected as low_score, and their answers with them. Marin's threshold is 10; None
    keeps all."""
    min_answer_score: int | None = versioned(None)
    """Answers of a lower score are rejected as low_answer_score; None keeps all."""
    min_answers: int = versioned(0)
    """A question with fewer answers is rejected as too_few_answers."""
    max_answers: int | None = versioned(None)
    """As many answers of a question, the first ones in `order`; None keeps all."""
    order: str = versioned("score")
    """Order of the answers: "score", highest first; "accepted_first", then by score; or "date"."""
    max_post_bytes: int = versioned(1_000_000)
    """Limit of a post's HTML. A larger one is rejected as too_large. The sites allow 30,000 characters of Markdown."""
    max_page_bytes: int = versioned(20_000_000)
    """Limit of a thread's HTML. A larger one is rejected as thread_too_large."""

    def check(self) -> None:
        """Raise CrawlError for values that cannot be used."""
        super().check()
        check_site(self.site)
        if self.order not in ORDERS:
            raise CrawlError(f"order is {self.order!r}, {expected_one_of(self.order, ORDERS)}")
        if self.min_answers < 0:
            raise CrawlError(f"min_answers is {self.min_answers!r}, expected 0 or more. Correct it.")
        if self.max_answers is not None and self.max_answers < max(1, self.min_answers):
            raise CrawlError(
                f"max_answers is {self.max_answers!r}, expected at least 1 and min_answers ({self.min_answers!r}), or "
                "None. Correct it."
            )


@dataclass(frozen=True, kw_only=True)
class DumpShard(SourceShard):
    """One file, whose posts become runs in a folder, and their index a file."""

    site: str


@dataclass(frozen=True, kw_only=True)
class RangeShard:
    """A range of the threads of a site, which become an output file."""

    site: str
    first: int
    end: int
    indexes: tuple[StoredFile, ...]
    runs: tuple[FolderState, ...]
    """The folder of each index."""
    output: str
    config: ReadStackexchangeConfig

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return (*self.indexes, *self.runs)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


def read_stackexchange(config: ReadStackexchangeConfig) -> dict[str, int | float]:
    """Read the threads of dumps as pages.

    Returns files, sites, posts (rows), posts_kept, pages, rejected, each rejected_<reason>, bytes (of text), cut_files,
    ignored_members; ignored_files if any exist. Raises CrawlError, also if no post is kept, and ShardError with the
    file for a cut one.
    """
    config.check()
    listed, ignored = config.files(kind="Stack Exchange", suffixes=SUFFIXES, expected=".7z or Posts.xml")
    files = in_order([file for file in listed if is_of_posts(file)], config.site)
    ignored += len(listed) - len(files)
    if not files:
        raise CrawlError(
            f"None of the files of {config.input_path!r} has posts, such as {listed[0].name!r}. Expected one such as "
            "'dba.stackexchange.com.7z' or 'stackoverflow.com-Posts.7z'. Correct input_path."
        )
    hidden = join(config.output_path, HIDDEN)
    dumps = [
        DumpShard(
            file=file, site=site, folder=join(hidden, f"{n:05}"), output=join(hidden, f"{n:05}.index"), config=config
        )
        for n, (site, file) in enumerate(files)
    ]
    counts = Counter(map_shards(read_dump, dumps, output_path=config.output_path))
    require_few_damages(counts, config, damages=DAMAGES, of="posts", noun="rows")
    shards = _range_shards(dumps, config)
    counts.update(map_shards(join_threads, shards, output_path=config.output_path))
    sentence = "Lower min_question_score, or correct input_path."
    require_some(counts, config.input_path, sentence, of="posts", kept="pages")
    remove_hidden(dumps)
    sites = len({dump.site for dump in dumps})
    return {"files": len(files), "sites": sites, **counts, **({"ignored_files": ignored} if ignored else {})}


def read_dump(shard: DumpShard) -> Counts:
    """Read one file: write its runs, and their index at the end. Returns the counts of `read_stackexchange`, without
    those of pages."""
    names = ("posts", "rejected", *(f"rejected_{r}" for r in (*DAMAGES, *OF_ROWS)), "cut_files", "ignored_members")
    counts = Counter(dict.fromkeys(names, 0))
    remove_if_exists(shard.folder)  # of a worker that was lost
    reader = _DumpReader(shard, counts)
    with opened(shard.file, counts, max_connections=shard.config.max_connections) as file:
        try:
            read_rows(file, shard.file.name, reader.take, counts)
        except CutError as error:
            count_cut(counts, shard.config, shard.file.name, error, texts="posts")
    reader.runs.flush()
    reader.runs.frames.write(shard.output)
    return dict(counts)


class _DumpReader:
    """Takes the rows of one file."""

    def __init__(self, shard: DumpShard, counts: Counter[str]) -> None:
        self._name, self._config, self._counts = shard.file.name, shard.config, counts
        self.runs = RunWriter(shard.folder)
        self._progress = CountProgress(shard.file.name, "posts")

    def take(self, row: bytes | TooLong) -> None:
        counts = self._counts
        counts["posts"] += 1
        post = post_of(row)
        if not isinstance(post, Post):
            place = f"{self._name!r} row {counts['posts']}"
            lose(counts, post, place, damages=DAMAGES, event="a post is lost")
        elif reason := _reason_of(post, self._config):
            reject(counts, reason)
            if not post.is_answer:
                self.runs.add(replace(post, body="", title="", tags=(), rejected=True))
        else:
            self.runs.add(post)
        self._progress.at(counts["posts"])


def _reason_of(post: Post, config: ReadStackexchangeConfig) -> str:
    """The reason of a post, one of OF_ROWS; "" to keep it."""
    if not post.body.strip():
        return "empty"
    if len(post.body.encode()) > config.max_post_bytes:
        return "too_large"
    least = config.min_answer_score if post.is_answer else config.min_question_score
    if least is not None and post.score < least:
        return "low_answer_score" if post.is_answer else "low_score"
    return ""


def _range_shards(dumps: list[DumpShard], config: ReadStackexchangeConfig) -> list[RangeShard]:
    parts = []
    for site, group in groupby(dumps, key=lambda dump: dump.site):
        of_site = list(group)
        frames = [read_frames(dump.output) for dump in of_site]
        with_posts = [dump for dump, index in zip(of_site, frames, strict=True) if index.numbers]
        if not with_posts:
            continue
        indexes = tuple(stored_file(dump.output) for dump in with_posts)
        runs = tuple(folder_state(dump.folder) for dump in with_posts)
        parts += [(site, first, end, indexes, runs) for first, end in ranges(frames, config.shard_bytes)]
    return [
        RangeShard(
            site=site,
            first=first,
            end=end,
            indexes=indexes,
            runs=runs,
            output=join(config.output_path, shard_name(index, len(parts))),
            config=config,
        )
        for index, (site, first, end, indexes, runs) in enumerate(parts)
    ]


def join_threads(shard: RangeShard) -> Counts:
    """Write the pages of one range of threads. Returns pages, posts_kept, bytes, rejected and reasons of threads."""
    config = shard.config
    names = ("pages", "posts_kept", "bytes", "rejected", *(f"rejected_{reason}" for reason in REASONS))
    counts = Counter(dict.fromkeys(names, 0))
    rules = ThreadRules(
        site=shard.site,
        source=config.source,
        max_answers=config.max_answers,
        min_answers=config.min_answers,
        order=config.order,
        max_page_bytes=config.max_page_bytes,
    )
    frames = [read_frames(index.path) for index in shard.indexes]
    posts = read_range([run.path for run in shard.runs], frames, shard.first, shard.end)
    pages = pages_of(posts, rules, partial(reject, counts))
    write_documents(shard.output, _counted(pages, counts), replace=False)
    return dict(counts)


def _counted(pages: Iterator[Document], counts: Counter[str]) -> Iterator[Document]:
    for page in pages:
        counts["pages"] += 1
        counts["posts_kept"] += 1 + len(page.metadata["answers"])
        counts["bytes"] += len(page.text.encode())
        yield page
