"""A few rows of each known data set in its schema, as files of a hub and of a server on loopback."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from dataset_hub import DatasetHub

from marin_assets.datasets import Chats, Corpus, Dataset, HubFiles, ListedFiles, MessageTrees, Preferences

ROWS = 4
LICENSED = {"spdx": "other"}


def commit_of(revision: str) -> str:
    """The 40 digits of the loopback hub's commit for a revision of the catalogue."""
    return "c" * 40 if revision == "main" else revision.ljust(40, "0")


def serve(dataset: Dataset, hub: DatasetHub) -> Dataset:
    """Add the files of the data set to the hub. Returns the data set; one of another server at the hub's address."""
    rows, files = rows_of(dataset), dataset.files
    if isinstance(dataset, MessageTrees):
        assert isinstance(files, HubFiles)
        add(hub, files.id, files.revision, _files_of_trees(files, rows))
        return dataset
    if isinstance(files, HubFiles):
        content = {"README.md": _card(files), **{path: encoded(path, rows) for path in paths_of(dataset)}}
        if dataset.is_json_lists:
            content = {path: json.dumps(rows).encode() for path in content if path.endswith(".json")}
        add(hub, files.id, files.revision, content)
        return dataset
    return _listed(dataset, files, rows, hub)


def _listed(dataset: Dataset, files: ListedFiles, rows: list[dict[str, Any]], hub: DatasetHub) -> Dataset:
    """The files as those of a repository of the hub, which takes the place of their server."""
    names = list(files.names) or [_name(glob) for glob in files.include]
    repository = f"server/{dataset.name.replace('/', '-')}"
    base = f"{hub.url}/datasets/{repository}/resolve/{commit_of('main')}/"
    texts = [row["text"] for row in rows]
    content = {name: json.dumps(texts).encode() if dataset.is_json_lists else encoded(name, rows) for name in names}
    at = files.names_at
    if isinstance(at, HubFiles):
        lines = "".join(f"{base}{name}\n" for name in [*names, "other/part-0000.json.gz"])
        add(hub, at.id, at.revision, {files.names_file: lines.encode(), "README.md": b"# A list\n"})
    elif isinstance(at, str):
        lines = "".join(f"{name}\n" for name in [*names, "quality=other/part-0.jsonl.zstd"])
        content[files.names_file] = gzip.compress(lines.encode())
        at = f"{base}{files.names_file}"
    add(hub, repository, "main", content)
    return dataclasses.replace(dataset, files=dataclasses.replace(files, base=base, names_at=at))


def add(hub: DatasetHub, name: str, revision: str, files: dict[str, bytes]) -> None:
    """Add files to the commit with the number of a revision."""
    commit = commit_of(revision)
    hub.add(name, files)
    repo = hub.repos[f"datasets/{name}"]
    repo.commits = {commit: {**repo.commits.get(commit, {}), **files}}
    repo.branches["main"] = commit


def rows_of(dataset: Dataset) -> list[dict[str, Any]]:
    """Rows in the schema of the data set."""
    if isinstance(dataset, MessageTrees):
        return [message for number in range(ROWS) for message in tree_of(number)]
    if isinstance(dataset, Chats):
        return chats_of(dataset.adapter)
    if isinstance(dataset, Preferences):
        return [{**_pair(dataset.adapter, number), "source": "made"} for number in range(ROWS)]
    assert isinstance(dataset, Corpus)
    return texts_of(dataset)


def _files_of_trees(files: HubFiles, rows: list[dict[str, Any]]) -> dict[str, bytes]:
    """Files with the names that OpenAssistant's have: splits are not in the card; the messages are again in others."""
    other = {"train": "validation", "validation": "train"}[files.split or ""]
    return {
        "README.md": b"---\nlicense: apache-2.0\n---\n",
        f"data/{files.split}-00000-of-00001-b42a775f407cee45.parquet": encoded("a.parquet", rows[::-1]),
        f"data/{other}-00000-of-00001-134b8fd0c89408b6.parquet": encoded("a.parquet", tree_of(ROWS)),
        "2023-04-12_oasst_all.messages.jsonl.gz": encoded("a.jsonl.gz", rows + tree_of(ROWS)),
    }


def tree_of(number: int) -> list[dict[str, Any]]:
    """The messages of a tree: a question with two answers, the better of which has a follow-up and its answer. One
    more answer was refused by reviewers, although its rank is the best."""

    def message(id: str, parent: str | None, role: str, text: str, rank: int | None, **fields: Any) -> dict[str, Any]:
        return {
            "message_id": f"{number}{id}", "parent_id": parent and f"{number}{parent}", "user_id": "u",
            "created_date": "2023-02-05T14:23:50.983374+00:00", "text": text, "role": role,
            "lang": ("en", "de")[number % 2], "review_count": 3, "review_result": True, "deleted": False, "rank": rank,
            "synthetic": False, "model_name": None, "message_tree_id": f"{number}q", "tree_state": "ready_for_export",
            **fields,
        }  # fmt: skip

    return [
        message("q", None, "prompter", f"What is the sum of {number} and {number}?", None),
        message("a", "q", "assistant", "It is odd.", 2),
        message("b", "q", "assistant", f"It is {2 * number}.", 1),
        message("c", "q", "assistant", "Look it up.", 0, review_result=False),
        message("d", "b", "prompter", "Are you sure?", None, review_result=None),
        message("e", "d", "assistant", "Yes.", 0),
    ]


def _pair(adapter: str, number: int) -> dict[str, Any]:
    prompt, right, wrong = f"What is the sum of {number} and {number}?", f"It is {2 * number}.", "It is odd."
    if adapter == "transcripts":
        begin = f"\n\nHuman: {prompt}\n\nAssistant: "
        return {"chosen": begin + right, "rejected": begin + wrong}
    sides = [[{"role": "user", "content": prompt}, {"role": "assistant", "content": text}] for text in (right, wrong)]
    return {"chosen": sides[0], "rejected": sides[1]}


def texts_of(corpus: Corpus) -> list[dict[str, Any]]:
    """Rows with the columns of the corpus, and others beside them."""
    return [
        {
            corpus.text: f"A text of {corpus.name}, number {number}: the sum of {number} and {number} is {2 * number}.",
            **({} if corpus.id is None else {corpus.id: f"{corpus.name}-{number}"}),
            **{column: f"{column} {number}" for column in (() if corpus.metadata == "all" else corpus.metadata)},
            "unused": number,
        }
        for number in range(ROWS)
    ]


def chats_of(adapter: str) -> list[dict[str, Any]]:
    """Rows of the adapter's shape, and a column beside it."""
    return [{**_chat(adapter, number), "source": "made"} for number in range(ROWS)]


def _chat(adapter: str, number: int) -> dict[str, Any]:
    prompt, answer = f"What is the sum of {number} and {number}?", f"It is {2 * number}."
    user, assistant = {"role": "user", "content": prompt}, {"role": "assistant", "content": answer}
    if adapter == "openai":
        return {"messages": [user, assistant]}
    if adapter in ("sharegpt", "conversations"):
        names = ("human", "gpt") if adapter == "sharegpt" else ("user", "assistant")
        return {"conversations": [{"from": names[0], "value": prompt}, {"from": names[1], "value": answer}]}
    if adapter == "dolly":
        return {"instruction": prompt, "response": answer}
    if adapter == "messages/answer":
        return {"messages": [user], "answer": answer}
    if adapter == "question/inferences":
        worse = {"completion": "It is odd.", "pass_rate": 0.1}
        return {"question": prompt, "inferences": [worse, {"completion": answer, "pass_rate": 0.9}]}
    if adapter == "question/responses":
        return {
            "question": prompt,
            "responses": [{"response": answer, "model": "m"}, {"response": "No.", "model": "n"}],
        }
    columns = adapter.split("/")
    return {columns[0]: prompt, columns[1]: answer}


def paths_of(dataset: Dataset) -> list[str]:
    """A file that each glob chooses, or the file of the split, and one that is not chosen."""
    files = dataset.files
    assert isinstance(files, HubFiles)
    if files.globs == ("**",) and files.split is not None:
        folder = "data" if files.config_name is None else files.config_name
        return [f"{folder}/{files.split}-00000-of-00001.parquet", "data/unchosen-00000-of-00001.parquet"]
    if files.globs == ("**",):
        return ["data/train-00000.parquet"]
    return [*map(_name, files.globs), "elsewhere/0.parquet"]


def _name(glob: str) -> str:
    """A path that the glob matches. One of Nemotron-CC has all its folders."""
    if "quality=" in glob:
        kind = "" if "kind=" in glob else "kind=actual/"
        glob = glob.replace("**/", f"{kind}kind2=actual/")
    return glob.replace("**/", "part/").replace("**", "part").replace("*", "0000")


def _card(files: HubFiles) -> bytes:
    """A README.md that lists the config and its split, as the hub's cards do."""
    if files.split is None:
        return b"# Made of a few rows\n"
    folder = "data" if files.config_name is None else files.config_name
    config = {
        "config_name": files.config_name or "default",
        "data_files": [
            {"split": files.split, "path": f"{folder}/{files.split}-*"},
            {"split": "unchosen", "path": "data/unchosen-*"},
        ],
    }
    return f"---\nconfigs: {json.dumps([config])}\n---\n".encode()


def encoded(path: str, rows: list[dict[str, Any]]) -> bytes:
    """The rows in the format of the file's name."""
    if path.endswith(".parquet"):
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), buffer)
        return buffer.getvalue()
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    if path.endswith(".gz"):
        return gzip.compress(lines)
    return zstandard.compress(lines) if path.endswith((".zst", ".zstd")) else lines
