"""Join the messages of trees to threads: rows of chats, one for each path from a root to an answer.

In:  files of rows of which each is one message, with its own id, its parent's and its tree's, as OpenAssistant's are.
     Rows may be in any order, and those of a tree in several files.
Out: rows {id, messages, tree, language} in `partitions` files. The id is that of the last message; a tree is in the
     file that a hash of its id chooses, and threads are in the order of trees. `conversations` reads them.

Each row is a message of a thread or rejected for one reason: messages = in_threads + rejected. Memory is that of the
trees of one file of the output.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from marin_assets.documents import BadRow, document_files, read_rows, shard_name, write_rows
from marin_assets.documents.chats.messages import ASSISTANT, USER
from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.documents.position import position
from marin_assets.stages.transform.conversations.fields import DEFAULT_ROLES, ConversationError
from marin_assets.stages.transform.conversations.trees import Node, Path, threads_of
from marin_assets.stages.transform.conversations.write_rows import DAMAGES
from marin_assets.stages.transform.ingest import given_id
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, remove_folder, stored_file
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("jsonl",)

HIDDEN = ".marin/threads"
BEST, ALL_PATHS = "best", "all"
MOST_PARTITIONS = 512
"""A worker has a temporary file open for each."""
ROW_REASONS = ("no_id", "no_tree", "unknown_role", "not_text", "empty_message", "bad_rank", "deleted", "refused")
TREE_REASONS = ("repeated_id", "other_language", "orphan", "not_chosen")


@dataclass(frozen=True, kw_only=True)
class ThreadsConfig:
    rows_path: str
    """A folder of files of rows, or one file."""
    output_path: str = THIS_OUTPUT_PATH
    paths: str = versioned(BEST)
    """The threads of a tree: "best", the one of the lowest ranks, or "all" that end with an answer."""
    languages: tuple[str, ...] = versioned(())
    """Languages of the roots of trees to keep, as the rows spell them; () keeps all."""
    id_column: str = versioned("message_id")
    parent_column: str = versioned("parent_id")
    """The column of the parent's id, which is null of a root."""
    tree_column: str = versioned("message_tree_id")
    """The column of an id that all messages of a tree have in common."""
    role_column: str = versioned("role")
    text_column: str = versioned("text")
    rank_column: str | None = versioned("rank")
    """The column of a number, the lowest for the best answer to a message. None: the lowest id is the best."""
    language_column: str | None = versioned("lang")
    deleted_column: str | None = versioned("deleted")
    """The column that is true of a message that was deleted. The messages below it are rejected with it."""
    review_column: str | None = None
    """The column that is false of a message which reviewers refused, such as versioned("review_result"): it is rejected
    with the messages below it. A null is no refusal. None: no column is read."""
    roles: dict[str, str] = field(default_factory=lambda: versioned(dict(DEFAULT_ROLES)))
    """Names of roles in the rows, in any case -> "user" or "assistant"."""
    partitions: int = versioned(16)
    """Files of the output. A tree is held in memory with the others of its file: take more for more than some GB."""
    max_damaged_fraction: float = versioned(0.001)
    """Largest share of lines that are no row. Above it the stage fails."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class MessagesShard:
    """One file of rows, whose messages become a file for each partition."""

    file: StoredFile
    outputs: tuple[str, ...]
    config: ThreadsConfig

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return (self.file,)


@dataclass(frozen=True, kw_only=True)
class TreesShard:
    """The messages of one partition, of all files, which become one file of threads."""

    inputs: tuple[StoredFile, ...]
    output: str
    config: ThreadsConfig

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


def join_threads(config: ThreadsConfig) -> dict[str, int | float]:
    """Join messages to threads.

    Returns messages, in_threads, rejected, each rejected_<reason>, trees, threads, messages_unaccounted, and
    ignored_files if any exist. Raises ConversationError, and ShardError with the file for a damaged one.
    """
    _check(config)
    files = document_files(config.rows_path)
    hidden = join(config.output_path, HIDDEN)
    names = [f"{i:05d}.jsonl.zst" for i in range(config.partitions)]
    by_file = [
        MessagesShard(file=file, outputs=tuple(join(hidden, f"{n:05d}", name) for name in names), config=config)
        for n, file in enumerate(files.shards)
    ]
    counts = Counter(map_shards(divide_messages, by_file, output_path=config.output_path))
    _require_messages(config, counts)
    by_tree = [
        TreesShard(
            inputs=tuple(stored_file(shard.outputs[i]) for shard in by_file),
            output=join(config.output_path, shard_name(i, config.partitions)),
            config=config,
        )
        for i in range(config.partitions)
    ]
    counts.update(map_shards(join_trees, by_tree, output_path=config.output_path))
    if not counts["threads"]:
        raise ConversationError(
            f"The {counts['messages']:,} messages of {config.rows_path!r} have no thread that ends with an answer "
            f"({_reasons(counts)}). Check the columns, roles and languages."
        )
    with suppress(FileNotFoundError):
        remove_folder(hidden)
    unaccounted = counts["messages"] - counts["in_threads"] - counts["rejected"]
    return {**counts, "messages_unaccounted": unaccounted, **files.counts}


def _check(config: ThreadsConfig) -> None:
    if config.paths not in (BEST, ALL_PATHS):
        raise ConversationError(f"paths is {config.paths!r}, {expected_one_of(config.paths, (BEST, ALL_PATHS))}")
    if not 1 <= config.partitions <= MOST_PARTITIONS:
        raise ConversationError(f"partitions is {config.partitions!r}, expected a number from 1 to {MOST_PARTITIONS}.")


def _require_messages(config: ThreadsConfig, counts: Counter[str]) -> None:
    if not counts["messages"]:
        raise ConversationError(f"The files of {config.rows_path!r} have no rows. Correct rows_path or the files.")
    damaged = sum(counts[f"rejected_{reason}"] for reason in DAMAGES)
    if damaged > config.max_damaged_fraction * counts["messages"]:
        raise ConversationError(
            f"{damaged:,} of the {counts['messages']:,} lines of {config.rows_path!r} are no rows "
            f"({_reasons(counts)}), more than max_damaged_fraction {config.max_damaged_fraction:g}. Download the "
            "files again, or raise it."
        )


def _reasons(counts: Mapping[str, int | float]) -> str:
    named = {name.removeprefix("rejected_"): n for name, n in counts.items() if name.startswith("rejected_") and n}
    return ", ".join(f"{n:,} {name}" for name, n in sorted(named.items())) or "none rejected"


def divide_messages(shard: MessagesShard) -> Counts:
    """Write the messages of one file to the partitions of their trees. Returns messages and what is rejected."""
    config = shard.config
    names = ("messages", "rejected", *(f"rejected_{reason}" for reason in (*DAMAGES, *ROW_REASONS)))
    counts = Counter(dict.fromkeys(names, 0))
    with ExitStack() as stack:
        parts = [stack.enter_context(tempfile.TemporaryFile()) for _ in shard.outputs]
        for _, row in read_rows(shard.file.path):
            counts["messages"] += 1
            try:
                tree, node = _message(row, config)
            except NotAChat as reason:
                counts["rejected"] += 1
                counts[f"rejected_{reason.reason}"] += 1
                continue
            line = json.dumps({"tree": tree, **dataclasses.asdict(node)}) + "\n"
            parts[position(tree) % config.partitions].write(line.encode())
        for part, path in zip(parts, shard.outputs, strict=True):
            part.seek(0)
            write_rows(path, map(json.loads, part), replace=False)
    return dict(counts)


def _message(row: Mapping[str, Any] | BadRow, config: ThreadsConfig) -> tuple[str, Node]:
    if isinstance(row, BadRow):
        raise NotAChat(row.reason)
    id, tree = given_id(row.get(config.id_column)), given_id(row.get(config.tree_column))
    if id is None or tree is None:
        raise NotAChat("no_id" if id is None else "no_tree")
    if config.deleted_column is not None and row.get(config.deleted_column) is True:
        raise NotAChat("deleted")
    if config.review_column is not None and row.get(config.review_column) is False:
        raise NotAChat("refused")
    role, text = row.get(config.role_column), row.get(config.text_column)
    names = {name.strip().lower(): to for name, to in config.roles.items()}
    if not isinstance(role, str) or (to := names.get(role.strip().lower())) not in (USER, ASSISTANT):
        raise NotAChat("unknown_role")
    if not isinstance(text, str):
        raise NotAChat("not_text" if text is not None else "empty_message")
    if not text.strip():
        raise NotAChat("empty_message")
    rank = None if config.rank_column is None else row.get(config.rank_column)
    if rank is not None and (not isinstance(rank, int | float) or rank != rank or abs(rank) > 2**53):
        raise NotAChat("bad_rank")
    language = None if config.language_column is None else row.get(config.language_column)
    return tree, Node(
        id=id,
        parent=given_id(row.get(config.parent_column)),
        role=to,
        is_answer=to == ASSISTANT,
        text=text,
        rank=None if rank is None else float(rank),
        language=language if isinstance(language, str) else None,
    )


def join_trees(shard: TreesShard) -> Counts:
    """Write the threads of one partition. Returns trees, threads, in_threads, and what is rejected."""
    names = ("trees", "threads", "in_threads", "rejected", *(f"rejected_{reason}" for reason in TREE_REASONS))
    counts = Counter(dict.fromkeys(names, 0))
    write_rows(shard.output, _threads(shard, counts), replace=False)
    return dict(counts)


def _threads(shard: TreesShard, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    rows = (row for file in shard.inputs for _, row in read_rows(file.path))
    messages = [(row.pop("tree"), Node(**row)) for row in rows if not isinstance(row, BadRow)]
    messages.sort(key=lambda message: (message[0], _sorted_by(message[1])))
    for tree, group in groupby(messages, key=lambda message: message[0]):
        counts["trees"] += 1
        nodes = [node for _, node in group]
        rejected = Counter[str]()
        in_threads: set[str] = set()
        for path in _of_tree(nodes, shard.config, rejected):
            counts["threads"] += 1
            in_threads.update(node.id for node in path)
            yield _row(tree, path)
        counts["in_threads"] += len(in_threads)
        counts["rejected"] += rejected.total()
        counts.update({f"rejected_{reason}": n for reason, n in rejected.items()})


def _sorted_by(node: Node) -> tuple[str, ...]:
    return node.id, node.text, node.parent or "", node.role, repr(node.rank), node.language or ""


def _of_tree(nodes: list[Node], config: ThreadsConfig, rejected: Counter[str]) -> Iterator[Path]:
    unique = {node.id: node for node in reversed(nodes)}  # of equal ids the first text in order
    rejected["repeated_id"] += len(nodes) - len(unique)
    roots = [node for node in unique.values() if node.parent is None]
    if config.languages and roots and not any(root.language in config.languages for root in roots):
        rejected["other_language"] += len(unique)
        return
    yield from threads_of([*unique.values()], best=config.paths == BEST, counts=rejected)


def _row(tree: str, path: Path) -> dict[str, Any]:
    messages = [{"role": node.role, "content": node.text} for node in path]
    return {"id": path[-1].id, "messages": messages, "tree": tree, "language": path[0].language}
