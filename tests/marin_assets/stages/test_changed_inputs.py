"""A stage that starts again after its inputs changed reads all that changed, and keeps the rest.

Inputs that change while it works are an error: it would mix two states of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bucket_for_tests import BucketForTests
from near_duplicate_texts import find

from marin_assets.documents import Document, read_rows, shard_name, write_documents, write_rows
from marin_assets.documents.attributes import Decision, write_attributes
from marin_assets.stages.consolidate.consolidate import ConsolidateConfig, consolidate
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_held_out_set
from marin_assets.stages.sample.count_documents import CountDocumentsConfig, count_documents
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.stages.tokenize import train_tokenizer as train_tokenizer_module
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.input_changes import InputChangedError, require_unchanged
from marin_resources.ray_tpu.shards.map_shards import ShardError, map_shards
from marin_resources.storage.files import stored_files

SHARDS = 3


@dataclass(frozen=True)
class Inputs:
    documents: Path
    tokenizer: Path
    clusters: Path
    scores: Path

    def write_documents(self, only: int | None = None, ending: str = "") -> None:
        for index in range(SHARDS) if only is None else [only]:
            rows = [
                Document(id=f"{index}-{n}", text=f"page {index} {n} says this and that, {ending}" * 3, source="web")
                for n in range(20)
            ]
            write_documents(str(self.documents / shard_name(index, SHARDS)), rows)

    def train(self, vocab_size: int) -> None:
        config = TrainTokenizerConfig(
            documents_path=str(self.documents), output_path=str(self.tokenizer), vocab_size=vocab_size
        )
        train_tokenizer(unwrap_versioned_value(config))

    def score(self, sign: int) -> None:
        write_attributes(str(self.documents), str(self.scores), scored, Sign(sign=sign))


@dataclass(frozen=True, kw_only=True)
class Sign:
    sign: int


def scored(config: Sign) -> Callable[[Document], Decision]:
    return lambda document: Decision(keep=True, value=config.sign * float(document.id.replace("-", "")))


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    inputs = Inputs(*(tmp_path / name for name in ("documents", "tokenizer", "clusters", "scores")))
    inputs.write_documents()
    inputs.train(270)
    return inputs


def tokenized(inputs: Inputs, output: str) -> Mapping[str, Any]:
    config = TokenizeConfig(
        documents_path=str(inputs.documents),
        tokenizer_path=str(inputs.tokenizer),
        output_path=output,
        validation_fraction=0.3,
    )
    return tokenize(unwrap_versioned_value(config))


def held_out(inputs: Inputs, output: str) -> Mapping[str, Any]:
    config = HeldOutConfig(
        documents_path=str(inputs.documents),
        output_path=output,
        validation_fraction=0.5,
        questions=4,
        context_characters=20,
        continuation_characters=20,
    )
    return make_held_out_set(unwrap_versioned_value(config))


def counted(inputs: Inputs, output: str) -> Mapping[str, Any]:
    config = CountDocumentsConfig(
        documents_path=str(inputs.documents), tokenizer_path=str(inputs.tokenizer), output_path=output
    )
    return count_documents(unwrap_versioned_value(config))


def consolidated(inputs: Inputs, output: str) -> Mapping[str, Any]:
    config = ConsolidateConfig(
        documents_path=str(inputs.documents), attributes=[], tokenizer_path=str(inputs.tokenizer), output_path=output
    )
    return consolidate(unwrap_versioned_value(config))


def decided(inputs: Inputs, output: str) -> Mapping[str, Any]:
    config = DecideNearDuplicatesConfig(
        documents_path=str(inputs.documents),
        clusters_path=str(inputs.clusters),
        attributes_path=str(inputs.scores),
        output_path=output,
        keep="highest",
    )
    return decide_near_duplicates(unwrap_versioned_value(config))


def data_files(folder: Path) -> dict[str, bytes]:
    found = (file for file in folder.rglob("*") if file.is_file() and ".marin" not in file.parts)
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def require_as_if_new(run: Callable[[Inputs, str], Any], inputs: Inputs, folder: Path) -> None:
    """What the second run makes in the output of the first is what a run into an empty output makes."""
    again, fresh = run(inputs, str(folder / "out")), run(inputs, str(folder / "fresh"))
    assert again == fresh
    assert data_files(folder / "out") == data_files(folder / "fresh")


@pytest.mark.parametrize("run", [tokenized, held_out, counted, consolidated])
def test_documents_that_changed_are_read_again(
    run: Callable[[Inputs, str], Any], inputs: Inputs, tmp_path: Path
) -> None:
    before = run(inputs, str(tmp_path / "out"))
    inputs.write_documents(only=1, ending="and a little more")
    require_as_if_new(run, inputs, tmp_path)
    assert run(inputs, str(tmp_path / "out")) != before


@pytest.mark.parametrize("run", [tokenized, counted, consolidated])
def test_a_tokenizer_that_changed_is_read_again(
    run: Callable[[Inputs, str], Any], inputs: Inputs, tmp_path: Path
) -> None:
    before = run(inputs, str(tmp_path / "out"))
    inputs.train(280)
    require_as_if_new(run, inputs, tmp_path)
    assert run(inputs, str(tmp_path / "out")) != before


def test_attributes_that_changed_are_read_again(inputs: Inputs, tmp_path: Path) -> None:
    find(str(inputs.documents), inputs.clusters)
    inputs.score(1)
    decided(inputs, str(tmp_path / "out"))
    before = data_files(tmp_path / "out")
    inputs.score(-1)
    require_as_if_new(decided, inputs, tmp_path)
    assert data_files(tmp_path / "out") != before


def sampled(inputs: Inputs, output: str) -> Mapping[str, Any]:
    config = SampleDocumentsConfig(documents_path=str(inputs.documents), output_path=output, count=7)
    return sample_documents(unwrap_versioned_value(config))


def deduplicated(inputs: Inputs, output: str) -> Mapping[str, Any]:
    return exact_duplicates(
        unwrap_versioned_value(ExactDuplicatesConfig(documents_path=str(inputs.documents), output_path=output))
    )


def clustered(inputs: Inputs, output: str) -> Mapping[str, Any]:
    return find_near_duplicates(
        unwrap_versioned_value(FindNearDuplicatesConfig(documents_path=str(inputs.documents), output_path=output))
    )


@pytest.fixture
def after_shards(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], object]], None]:
    """Run something once, after the stage has finished so many shards: a first phase has SHARDS."""

    def arrange(count: int, change: Callable[[], object]) -> None:
        finished: list[str] = []

        def reach(point: str) -> None:
            if point == "shard noted":
                finished.append(point)
                if len(finished) == count:
                    change()

        monkeypatch.setattr("marin_resources.storage.fault_points.reach", reach)

    return arrange


@pytest.mark.parametrize("run", [sampled, deduplicated, clustered])
def test_documents_that_change_between_two_phases_are_an_error(
    run: Callable[[Inputs, str], Any], inputs: Inputs, tmp_path: Path, after_shards: Any
) -> None:
    after_shards(SHARDS, lambda: inputs.write_documents(only=0, ending="and a little more"))
    with pytest.raises(
        ShardError,
        match=r"The input '.*part-00000-of-00003\.jsonl\.zst' changed .*: it had .* bytes",
    ):
        run(inputs, str(tmp_path / "out"))
    require_as_if_new(run, inputs, tmp_path)


def test_documents_that_are_removed_between_listing_and_reading_are_an_error(
    inputs: Inputs, tmp_path: Path, after_shards: Any
) -> None:
    after_shards(1, lambda: [path.unlink() for path in inputs.documents.iterdir()])
    with pytest.raises(ShardError, match=r"part-0000\d-of-00003\.jsonl\.zst' changed .*: it was removed"):
        counted(inputs, str(tmp_path / "out"))


def test_a_tokenizer_that_changes_while_a_stage_reads_it_is_an_error(
    inputs: Inputs, tmp_path: Path, after_shards: Any
) -> None:
    after_shards(SHARDS, lambda: inputs.train(280))
    with pytest.raises(InputChangedError, match=r"The input '.*tokenizer' changed .*: files below it were written"):
        counted(inputs, str(tmp_path / "out"))


def test_a_cluster_table_that_changes_between_two_phases_is_an_error(
    inputs: Inputs, tmp_path: Path, after_shards: Any
) -> None:
    find(str(inputs.documents), inputs.clusters)
    inputs.score(1)

    def write_again() -> None:
        table = inputs.clusters / shard_name(0, SHARDS)
        write_rows(str(table), [row for _, row in read_rows(str(table)) if isinstance(row, dict)])

    after_shards(SHARDS, write_again)
    with pytest.raises(InputChangedError, match=r"The input '.*clusters' changed"):
        decided(inputs, str(tmp_path / "out"))


def test_documents_that_change_while_a_tokenizer_is_trained_are_an_error(
    inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = train_tokenizer_module._write_folder

    def and_change_the_documents(*arguments: Any) -> None:
        write(*arguments)
        inputs.write_documents(only=1, ending="and a little more")

    monkeypatch.setattr(train_tokenizer_module, "_write_folder", and_change_the_documents)
    with pytest.raises(InputChangedError, match="part-00001-of-00003"):
        inputs.train(280)


def test_the_check_of_an_input_in_a_bucket_takes_one_request(gcs_bucket: BucketForTests) -> None:
    path = f"{gcs_bucket.prefix}/a.jsonl"
    write_documents(path, [Document(id="a", text="b")])
    files = stored_files(gcs_bucket.prefix)
    before = gcs_bucket.requests_made()
    require_unchanged([*files, *files])
    assert gcs_bucket.requests_made() == before + 1
    write_documents(path, [Document(id="a", text="c")])
    with pytest.raises(InputChangedError, match=r"a\.jsonl' changed while the stage read it: it was written again"):
        require_unchanged(files)


@dataclass(frozen=True, kw_only=True)
class OnlyAPath:
    path: str


def read(shard: Any) -> dict[str, int]:
    return {"bytes": len(Path(shard.path).read_bytes())}


def test_a_shard_that_declares_no_inputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="inputs=None, expected a tuple of the StoredFiles that the function reads"):
        map_shards(read, [OnlyAPath(path=str(tmp_path))], output_path=str(tmp_path / "out"))  # type: ignore[type-var]
