"""Convert files of text to documents: .txt, .md, .rst, .html, .htm, .pod and .tex, also in zip and tar archives.

In:  a folder of files and archives, at any depth, or one of them.
Out: documents in shards "part-00000-of-00002.jsonl.zst". A file is a document, or several with `split_at` or
     `split_before`. Its id is its path below the folder, "letters/1890.txt" or "letters.zip/1890.txt"; of a part
     "letters/1890.txt#0", "…#1", … metadata["file"] is the path.

The text of HTML is extracted as Markdown, as `html_to_markdown` does. Other text is taken as it is, with its markup;
line ends become "\\n". Each file is kept or rejected for one reason: files = files_kept + rejected, rejected = sum of
rejected_<reason>. A damaged archive fails the stage, since its lost files cannot be counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marin_assets.documents import SUFFIX, Document, check_format, write_documents
from marin_assets.stages.transform.html_to_markdown import extractor_named
from marin_assets.stages.transform.text import text_archives, text_parts
from marin_assets.stages.transform.text.text_archives import ARCHIVES, read_members
from marin_assets.stages.transform.text.text_parts import HTML, texts_of
from marin_assets.stages.transform.text.text_rejections import UNKNOWN_SUFFIX, Rejected, Rejections, few_suffixes
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, open_to_read, stored_files
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("text",)

PLAIN = (".txt", ".md", ".rst", ".pod", ".tex")
CHECKSUMS = "checksums.json"
"""The list that `download_files` writes beside its files. It is no file of the source."""
SHARD_BYTES = 16 * 1024**2
"""Files that follow one another share an output file up to this size: a folder of 10,000 notes becomes few files."""
NAMED = 5
"""Names of other files in an error."""
NOT_BAD = (UNKNOWN_SUFFIX, "hidden", "empty")
"""Reasons that lose no text, or that the names show. They do not count for `max_bad_fraction`."""
REASONS = (UNKNOWN_SUFFIX, "hidden", *text_archives.REASONS, *text_parts.REASONS)


class TextFilesError(MarinError, ValueError):
    """An invalid config, or input without text: one sentence."""


@dataclass(frozen=True, kw_only=True)
class TextFilesConfig:
    input_path: str
    """A folder, one file of text, or one archive."""
    output_path: str = THIS_OUTPUT_PATH
    source: str = versioned("")
    """The `source` of every document."""
    split_at: str | None = versioned(None)
    """A line that separates documents, such as "---"; it is in neither. Blanks around it are ignored."""
    split_before: str | None = versioned(None)
    """A regular expression, such as "# " or "CHAPTER [IVX]+". A line that begins with a match begins a document."""
    max_file_bytes: int = versioned(64 * 1024**2)
    """Limit of one file, decompressed. It is held in memory. A larger one is rejected as too_large."""
    max_bad_fraction: float = versioned(0.1)
    """Largest share of rejected files, without those of unknown suffixes, hidden ones and empty ones. Above it the
    stage fails: a wrong encoding must not lose a corpus."""
    extractor: str = versioned("resiliparse-2")
    """Name of the extractor of HTML, as in HtmlToMarkdownConfig."""
    output_format: str = versioned(SUFFIX)
    """".jsonl", ".jsonl.gz", ".jsonl.zst" or ".parquet"."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class TextShard:
    """Neighbouring files whose documents are in one output file."""

    inputs: tuple[StoredFile, ...]
    outputs: tuple[str]
    config: TextFilesConfig


def ingest_text_files(config: TextFilesConfig) -> dict[str, int | float]:
    """Convert files of text, loose or in archives, to documents.

    Returns files (in archives too), files_kept, rejected, each rejected_<reason>, unknown_suffix_<suffix>,
    files_unaccounted, archives, documents, files_split, empty_parts and bytes (of text). Raises TextFilesError, and
    ShardError with the path of a damaged archive.
    """
    _check(config)
    files = [file for file in stored_files(config.input_path) if file.name != CHECKSUMS]
    readable = [file for file in files if _is_archive(file.name) or not reject_name(file.name)]
    _require_readable(config, files, readable)
    _require_unique_ids(readable)
    counts = Counter(map_shards(ingest_shard, _shards(readable, config), output_path=config.output_path))
    others = Rejections(counts)
    for file in files:
        if not _is_archive(file.name) and (reason := reject_name(file.name)):
            counts["files"] += 1
            others.add(file.name, reason)
    others.log(config.input_path)
    _require_text(config, counts)
    unaccounted = counts["files"] - counts["files_kept"] - counts["rejected"]
    return {**few_suffixes(counts), "files_unaccounted": unaccounted}


def _check(config: TextFilesConfig) -> None:
    check_format(config.output_format)
    extractor_named(config.extractor)
    if config.max_file_bytes < 1:
        raise TextFilesError(f"max_file_bytes is {config.max_file_bytes!r}, expected 1 or more.")
    if not 0 <= config.max_bad_fraction <= 1:
        raise TextFilesError(f"max_bad_fraction is {config.max_bad_fraction!r}, expected a fraction from 0 to 1.")
    if config.split_at is not None and config.split_before is not None:
        raise TextFilesError(
            f"split_at is {config.split_at!r} and split_before {config.split_before!r}, expected one of them. Leave "
            "the other out."
        )
    if config.split_at is not None and len(config.split_at.strip().splitlines()) != 1:
        raise TextFilesError(f"split_at is {config.split_at!r}, expected one line with a letter, such as '---'.")
    try:
        re.compile(config.split_before or "")
    except re.error as error:
        raise TextFilesError(
            f"split_before is {config.split_before!r}, which is no regular expression ({error}). Correct it, or put a "
            "backslash before each of its special characters."
        ) from error
    if config.split_before is not None and re.match(config.split_before, ""):
        raise TextFilesError(
            f"split_before is {config.split_before!r}, which matches an empty line, expected the beginning of a line "
            "that is none."
        )


def reject_name(name: str) -> str:
    """Return the reason to reject a file by its path, "" to read it."""
    parts = name.split("/")
    if "__MACOSX" in parts or any(part.startswith(".") for part in parts):
        return "hidden"
    return "" if name.lower().endswith(PLAIN + HTML) else UNKNOWN_SUFFIX


def _is_archive(name: str) -> bool:
    return name.lower().endswith(ARCHIVES)


def _require_readable(config: TextFilesConfig, files: Sequence[StoredFile], readable: Sequence[StoredFile]) -> None:
    if not readable:
        others = ", ".join(repr(file.name) for file in files[:NAMED]) or "no file"
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        raise TextFilesError(
            f"No file of text exists below {config.input_path!r}, only {others}{more}. Expected names that end with "
            f"one of {', '.join(PLAIN + HTML + ARCHIVES)}. Correct the path, or rename or convert the files."
        )


def _require_unique_ids(readable: Sequence[StoredFile]) -> None:
    """In a bucket, an archive and a folder can have the same name."""
    names = {file.name for file in readable}
    for name in sorted(names):
        above = name.rpartition("/")[0]
        while above:
            if above in names:
                raise TextFilesError(
                    f"{above!r} is an archive and a folder with {name!r}, so two documents could have one id. Rename "
                    "one of them."
                )
            above = above.rpartition("/")[0]


def _shards(files: Sequence[StoredFile], config: TextFilesConfig) -> list[TextShard]:
    groups: list[list[StoredFile]] = [[]]
    size = 0
    for file in files:
        if groups[-1] and size + file.size_bytes > SHARD_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size_bytes
    names = (f"part-{index:05d}-of-{len(groups):05d}{config.output_format}" for index in range(len(groups)))
    return [
        TextShard(inputs=tuple(group), outputs=(join(config.output_path, name),), config=config)
        for group, name in zip(groups, names, strict=True)
    ]


def ingest_shard(shard: TextShard) -> Counts:
    """Convert one group of files. Returns the counts of `ingest_text_files`."""
    names = ("files", "files_kept", "rejected", *(f"rejected_{r}" for r in REASONS), "archives", "documents",
             "files_split", "empty_parts", "bytes")  # fmt: skip
    counts = Counter(dict.fromkeys(names, 0))
    rejections = Rejections(counts)
    write_documents(shard.outputs[0], _documents(shard, counts, rejections), replace=False)
    rejections.log(shard.config.input_path)
    return dict(counts)


def _documents(shard: TextShard, counts: Counter[str], rejections: Rejections) -> Iterator[Document]:
    config = shard.config
    for name, content in _contents(shard, counts):
        counts["files"] += 1
        parts = content if isinstance(content, Rejected) else _texts(name, content, config)
        if isinstance(parts, Rejected):
            rejections.add(name, parts.reason)
            continue
        texts = [part for part in parts if part.strip()]
        counts["files_kept"] += 1
        counts["files_split"] += len(parts) > 1
        counts["empty_parts"] += len(parts) - len(texts)
        for number, text in enumerate(texts):
            counts["documents"] += 1
            counts["bytes"] += len(text.encode())
            id = name if len(texts) == 1 else f"{name}#{number}"
            yield Document(id=id, text=text, source=config.source, metadata={"file": name})


def _texts(name: str, content: bytes, config: TextFilesConfig) -> list[str] | Rejected:
    split_at, split_before = config.split_at, config.split_before
    return texts_of(name, content, extractor=config.extractor, split_at=split_at, split_before=split_before)


def _contents(shard: TextShard, counts: Counter[str]) -> Iterator[tuple[str, bytes | Rejected]]:
    """Yield path and content of each file, loose or in an archive. A path that is not UTF-8 has "\\xff" in it."""
    limit = shard.config.max_file_bytes
    for file in shard.inputs:
        if _is_archive(file.name):
            counts["archives"] += 1
            for name, content in read_members(file.path, reject_name=reject_name, max_bytes=limit):
                yield _utf8(f"{file.name}/{name}"), content
        elif file.size_bytes > limit:
            yield _utf8(file.name), Rejected("too_large")
        else:
            with open_to_read(file.path) as opened:
                yield _utf8(file.name), opened.read()


def _utf8(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _require_text(config: TextFilesConfig, counts: Counter[str]) -> None:
    bad = {reason: counts[f"rejected_{reason}"] for reason in REASONS if reason not in NOT_BAD}
    text_files = counts["files_kept"] + sum(bad.values())
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in bad.items() if number)
    if sum(bad.values()) > config.max_bad_fraction * text_files:
        raise TextFilesError(
            f"{sum(bad.values()):,} of the {text_files:,} files of text of {config.input_path!r} are rejected "
            f"({reasons}), more than max_bad_fraction {config.max_bad_fraction:g}. The log names the first of them. "
            "Convert them (text to UTF-8), or raise max_bad_fraction."
        )
    if not counts["documents"]:
        raise TextFilesError(
            f"The {counts['files']:,} files of {config.input_path!r} have no text ({counts['rejected_empty']:,} are "
            f"empty, {counts['rejected_unknown_suffix']:,} of an unknown suffix). Correct input_path or the files."
        )
    mark = config.split_at if config.split_at is not None else config.split_before
    if mark is not None and not counts["files_split"]:
        field = "split_at" if config.split_at is not None else "split_before"
        raise TextFilesError(
            f"{field} is {mark!r}, which divides none of the {counts['files_kept']:,} files of {config.input_path!r}. "
            "Correct it, or leave it out."
        )
