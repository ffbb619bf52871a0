"""Every known data set is downloaded from a hub on loopback, and its rows become documents or chats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from dataset_hub import DatasetHub, dataset_hub
from known_rows import ROWS, serve

from marin_assets import datasets
from marin_assets.datasets import (
    CATALOGUE,
    FAMILIES,
    Chats,
    Corpus,
    HubFiles,
    ListedFiles,
    MessageTrees,
    Preferences,
    dolma,
    fineweb_edu,
    nemotron_cc,
)
from marin_assets.datasets.dataset import COMMIT
from marin_assets.defaults import default_conversations
from marin_assets.documents import Document, read_rows, write_documents
from marin_assets.documents.shards import list_shards, read_documents
from marin_assets.stages.download.hub.listing import matcher
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, unwrap_versioned_value

CORPORA = [dataset for dataset in CATALOGUE.values() if isinstance(dataset, Corpus)]
TREES = [dataset for dataset in CATALOGUE.values() if isinstance(dataset, MessageTrees)]
CHATS = [dataset for dataset in CATALOGUE.values() if isinstance(dataset, Chats) and dataset not in TREES]
PREFERENCES = [dataset for dataset in CATALOGUE.values() if isinstance(dataset, Preferences)]
UNPINNED = {
    # no commit of these is known for certain
    *("wikipedia", "stackexchange", "ar5iv-no-problem", "ar5iv-warning"),
    # a list on Common Crawl's server has no commit
    *(dataset.name for dataset in nemotron_cc.values()),
}


def some(datasets: Any) -> list[Any]:
    """Each sixth of them; the others are long."""
    return [pytest.param(one, marks=() if at % 6 == 0 else pytest.mark.long) for at, one in enumerate(datasets)]


def name(dataset: Any) -> str:
    return str(dataset.name)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetHub]:
    """The hub; it has a token for what is gated."""
    with dataset_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", hub.token)
        yield hub


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_documents(str(folder / "d/a.jsonl.zst"), [Document(id=n, text=t) for n, t in sorted(topics.items())])
    config = TrainTokenizerConfig(documents_path=f"{folder}/d", output_path=f"{folder}/t", vocab_size=600)
    train_tokenizer(unwrap_versioned_value(config))
    return f"{folder}/t"


def compute(step: Step, prefix: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Call the functions of the step and of its inputs, in turn. Returns the output's path and all results."""
    graph = build_graph([step])
    results = {}
    for node in graph:
        config = resolve(node, graph, lambda output: f"{prefix}/{output.relative()}", str(prefix))
        results[node.name] = node.step.fn(config)
    return f"{prefix}/{graph[step].output.relative()}", results


@pytest.mark.parametrize("corpus", some(CORPORA), ids=name)
def test_the_rows_of_a_corpus_become_documents(corpus: Corpus, hub: DatasetHub, tmp_path: Path) -> None:
    served = serve(corpus, hub)
    assert isinstance(served, Corpus)
    gate(served, hub)
    path, results = compute(served.documents(), tmp_path)
    documents = [document for shard in list_shards(path) for document in read_documents(shard)]
    files = len(list_shards(path))
    assert len(documents) == ROWS * files
    assert results[f"documents/{corpus.name}"]["kept"] == ROWS * files
    assert {document.source for document in documents} == {corpus.name}
    assert documents[0].text.startswith(f"A text of {corpus.name}, number 0")
    if corpus.path_keys is not None:
        assert documents[0].id == f"actual/{corpus.name}-0"
        return
    assert set(documents[0].metadata) == set(corpus.metadata)
    if corpus.id is not None:
        assert documents[0].id == f"{corpus.name}-0"
    else:
        assert len({document.id for document in documents}) == ROWS  # of the texts, which files have in common


@pytest.mark.parametrize("dataset", some(CHATS), ids=name)
def test_the_rows_of_a_set_of_chats_are_learnt(
    dataset: Chats, hub: DatasetHub, tokenizer_path: str, tmp_path: Path
) -> None:
    served = serve(dataset, hub)
    assert isinstance(served, Chats)
    gate(served, hub)
    tokenizer: Any = InputName.hardcoded(tokenizer_path)
    _, results = compute(served.tokenized(tokenizer, max_seq_len=512, validation_fraction=0.0), tmp_path)
    result = results[f"tokenized/{dataset.name}"]
    assert (result["rows"], result["kept"], result["rejected"]) == (ROWS, ROWS, 0)
    assert result["loss_tokens"] > 0
    assert result["unread_source"] == ROWS  # and nothing else is left unread
    assert [key for key in result if key.startswith("unread_")] == ["unread_source"]


@pytest.mark.parametrize("dataset", some(CHATS), ids=name)
def test_the_rows_of_a_set_of_chats_become_conversations(dataset: Chats, hub: DatasetHub, tmp_path: Path) -> None:
    served = serve(dataset, hub)
    assert isinstance(served, Chats)
    gate(served, hub)
    path, results = compute(default_conversations(served, metadata_columns=("source",)), tmp_path)
    result = results[f"conversations/{dataset.name}"]
    assert (result["records"], result["conversations"], result["rejected"]) == (ROWS, ROWS, 0)
    assert not [key for key in result if key.startswith("unread_")]
    documents = [row for shard in list_shards(path) for _, row in read_rows(shard)]
    assert [document["messages"] for document in documents] == [
        [
            {"role": "user", "content": f"What is the sum of {number} and {number}?"},
            {"role": "assistant", "content": f"It is {2 * number}."},
        ]
        for number in range(ROWS)
    ]
    assert {(document["source"], document["metadata"]["source"]) for document in documents} == {(dataset.name, "made")}


@pytest.mark.parametrize("dataset", some(TREES), ids=name)
def test_the_best_threads_of_trees_become_conversations(dataset: MessageTrees, hub: DatasetHub, tmp_path: Path) -> None:
    serve(dataset, hub)
    path, results = compute(dataset.conversations(), tmp_path)
    threads, result = results[f"rows/{dataset.name}"], results[f"conversations/{dataset.name}"]
    assert (threads["messages"], threads["trees"], threads["threads"]) == (6 * ROWS, ROWS, ROWS)
    assert (threads["rejected_refused"], threads["rejected_not_chosen"], threads["rejected"]) == (ROWS, ROWS, 2 * ROWS)
    assert (result["conversations"], result["rejected"]) == (ROWS, 0)
    documents = {row["id"]: row for shard in list_shards(path) for _, row in read_rows(shard)}
    assert [turn["content"] for turn in documents["3e"]["messages"]] == [
        "What is the sum of 3 and 3?", "It is 6.", "Are you sure?", "Yes.",
    ]  # fmt: skip
    assert documents["3e"]["metadata"] == {"tree": "3q", "language": "de"}


def test_all_threads_of_the_trees_of_a_language_are_another_step(hub: DatasetHub, tmp_path: Path) -> None:
    serve(TREES[0], hub)
    path, _ = compute(TREES[0].conversations(paths="all", languages=("en",)), tmp_path)
    rows = [row for shard in list_shards(path) for _, row in read_rows(shard)]
    assert sorted(row["id"] for row in rows) == ["0a", "0e", "2a", "2e"]


@pytest.mark.long
@pytest.mark.parametrize("dataset", TREES, ids=name)
def test_the_threads_of_trees_are_learnt(
    dataset: MessageTrees, hub: DatasetHub, tokenizer_path: str, tmp_path: Path
) -> None:
    serve(dataset, hub)
    tokenizer: Any = InputName.hardcoded(tokenizer_path)
    _, results = compute(dataset.tokenized(tokenizer, max_seq_len=512, validation_fraction=0.0), tmp_path)
    result = results[f"tokenized/{dataset.name}"]
    assert (result["kept"], result["rejected"]) == (ROWS, 0)


@pytest.mark.parametrize("dataset", some(PREFERENCES), ids=name)
def test_the_rows_of_a_set_of_preferences_become_pairs(dataset: Preferences, hub: DatasetHub, tmp_path: Path) -> None:
    serve(dataset, hub)
    path, results = compute(dataset.preferences(metadata_columns=("source",)), tmp_path)
    result = results[f"preferences/{dataset.name}"]
    assert (result["records"], result["preferences"], result["rejected"]) == (ROWS, ROWS, 0)
    assert not [key for key in result if key.startswith("unread_")]
    rows = [row for shard in list_shards(path) for _, row in read_rows(shard)]
    assert [(row["chosen"][-1]["content"], row["rejected"][-1]["content"]) for row in rows] == [
        (f"It is {2 * number}.", "It is odd.") for number in range(ROWS)
    ]
    assert {row["source"] for row in rows} == {dataset.name}


@pytest.mark.parametrize("dataset", some(PREFERENCES), ids=name)
def test_the_rows_of_a_set_of_preferences_are_learnt(
    dataset: Preferences, hub: DatasetHub, tokenizer_path: str, tmp_path: Path
) -> None:
    serve(dataset, hub)
    tokenizer: Any = InputName.hardcoded(tokenizer_path)
    _, results = compute(dataset.tokenized(tokenizer, max_seq_len=512, validation_fraction=0.0), tmp_path)
    result = results[f"tokenized/{dataset.name}"]
    assert (result["kept"], result["rejected"]) == (ROWS, 0)


def gate(dataset: Any, hub: DatasetHub) -> None:
    if dataset.files.gated:
        hub.repos[f"datasets/{dataset.files.id}"].is_gated = True


@pytest.mark.parametrize("corpus", [fineweb_edu, dolma["wiki"]], ids=name)
def test_documents_of_a_known_corpus_are_tokenized(
    corpus: Corpus, hub: DatasetHub, tokenizer_path: str, tmp_path: Path
) -> None:
    served = serve(corpus, hub)
    assert isinstance(served, Corpus)
    _, results = compute(served.tokenized(tokenizer_path, validation_fraction=0.0), tmp_path)
    assert results[f"tokenized/{corpus.name}"]["train_tokens"] > ROWS


def test_a_file_beside_the_chosen_ones_is_not_downloaded(hub: DatasetHub, tmp_path: Path) -> None:
    _, results = compute(serve(dolma["wiki"], hub).raw(), tmp_path)
    raw = results["raw/dolma/wiki"]
    assert (raw["listed"], raw["files"]) == (2, 1)


@pytest.mark.parametrize("dataset", CATALOGUE.values(), ids=name)
def test_each_entry_is_pinned_or_known_not_to_be(dataset: Any) -> None:
    assert dataset.files.pinned == (dataset.name not in UNPINNED)
    if dataset.files.pinned:
        assert COMMIT.fullmatch(dataset.files.revision)


@pytest.mark.parametrize("dataset", CATALOGUE.values(), ids=name)
def test_each_entry_states_where_its_facts_are_from(dataset: Any) -> None:
    assert dataset.facts
    assert any(fact.startswith(("marin ", "public users' pins: ", "page of the commit: ")) for fact in dataset.facts)
    licences = [fact for fact in dataset.facts if "licence" in fact or "terms" in fact or "ContentLicense" in fact]
    assert licences or dataset.licence is None


def test_what_is_gated_needs_a_token_and_nothing_else_does() -> None:
    for dataset in CATALOGUE.values():
        assert ("HF_TOKEN" in dataset.raw().env) == dataset.files.gated, dataset.name


@pytest.mark.parametrize(
    ("family", "name", "near"),
    [(datasets.dolma, "wikii", "'wiki'"), (datasets.CATALOGUE, "finewebb", "'fineweb'")],
)
def test_an_unknown_name_is_a_sentence_with_the_nearest(family: Any, name: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"No known data set is called '{name}', expected one of .* {near}"):
        family[name]
    assert family.get(name) is None
    assert name not in family


def test_the_whole_catalogue_is_one_graph() -> None:
    steps = [dataset.documents() if isinstance(dataset, Corpus) else dataset.rows() for dataset in CATALOGUE.values()]
    graph = build_graph(steps)
    assert graph.drift == ()
    own = {node.name: node.origins for node in graph}
    for dataset in CATALOGUE.values():
        assert own[f"raw/{dataset.name}"] == {f"raw/{dataset.name}": dataset.origin}
    assert sum(len(datasets) for datasets in FAMILIES.values()) == len(CATALOGUE)


def test_the_names_of_common_crawls_list_are_below_its_server() -> None:
    """A line of the list, as it is published."""
    folder = "contrib/Nemotron/Nemotron-CC/data-jsonl/quality=high/kind=actual/kind2=actual"
    line = f"{folder}/CC-MAIN-2013-20-part-00000.jsonl.zstd"
    chosen_by = {split: [name] for split, corpus in nemotron_cc.items() if (name := _first(corpus, line))}
    assert chosen_by == {"hq_actual": [line]}
    assert nemotron_cc["medium"].files.include != nemotron_cc["medium_high"].files.include  # type: ignore[union-attr]


def test_each_file_of_dolma_is_in_one_subset() -> None:
    """Addresses as the list of Dolma has them, with names of Marin's list of its files."""
    for name in ("wiki-0000", "megawika-0001", "cc_en_head-0000", "cc_news_tail-0000", "c4-0170", "tulu_flan-0065"):
        address = f"folder/{name}.json.gz"
        assert sum(_first(corpus, address) is not None for corpus in dolma.values()) == 1, name


def _first(corpus: Corpus, name: str) -> str | None:
    """The name, if a glob of the corpus chooses it."""
    files = corpus.files
    assert isinstance(files, ListedFiles)
    return name if matcher(files.include)(name) else None


def test_an_entry_at_a_branch_is_not_called_pinned() -> None:
    assert not HubFiles(id="lab/texts", revision="main").pinned
    assert HubFiles(id="lab/texts", revision="1a2b3c4").pinned
