from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tokenizer_settings import with_settings

from marin_assets.documents import Document, read_documents, write_documents
from marin_assets.documents.caches.token_cache import CacheError, kvstore_of
from marin_assets.documents.position import TRAIN, split_of
from marin_assets.stages.tokenize.cache import read_documents_of, read_names
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, TokenizeError, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

FRACTION = 0.2


def make(documents: Path, tokenizer: Path, output: Path, **changes: Any) -> dict[str, Any]:
    config = TokenizeConfig(
        documents_path=str(documents),
        tokenizer_path=str(tokenizer),
        output_path=str(output),
        **{"validation_fraction": FRACTION, **changes},
    )
    return tokenize(unwrap_versioned_value(config))


def data_files(folder: Path) -> dict[str, bytes]:
    found = (file for file in folder.rglob("*") if file.is_file() and ".marin" not in file.parts)
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(found)}


@pytest.fixture(scope="module")
def tokenizer_path(documents_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    config = TrainTokenizerConfig(documents_path=str(documents_path), output_path=str(folder), vocab_size=600)
    train_tokenizer(unwrap_versioned_value(config))
    return folder


@pytest.fixture(scope="module")
def made(
    documents_path: Path, tokenizer_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("cache")
    return output, make(documents_path, tokenizer_path, output)


@pytest.fixture(scope="module")
def documents(documents_path: Path) -> list[Document]:
    return [document for shard in sorted(documents_path.iterdir()) for document in read_documents(str(shard))]


def test_the_counts_are_those_of_the_documents(made: tuple[Path, dict[str, Any]], documents: list[Document]) -> None:
    _, result = made
    train = [document for document in documents if split_of(document, FRACTION) == TRAIN]
    assert result["documents"] == len(documents)
    assert result["train_documents"] == len(train)
    assert result["validation_documents"] == len(documents) - len(train) > 0
    assert result["tokens"] == result["train_tokens"] + result["validation_tokens"]
    assert result["bytes"] == sum(len(document.text.encode()) for document in documents)
    assert result["split_overlap"] == 0
    assert result["token_mismatches"] == 0
    assert result["checked_documents"] >= 6
    assert json.loads(json.dumps(result)) == result


def test_every_document_is_bos_tokens_eos_in_the_order_of_its_shard(
    made: tuple[Path, dict[str, Any]], documents_path: Path, tokenizer_path: Path
) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_path / "tokenizer.json"))
    shard = sorted(documents_path.iterdir())[1]
    side = [document for document in read_documents(str(shard)) if split_of(document, FRACTION) == TRAIN]
    stored = read_documents_of(str(made[0] / "train/00001"), range(len(side)))
    assert [d.id for d in side] == next(read_names(str(made[0] / "train"), ["00001"])).ids
    for document, tokens in zip(side, stored, strict=True):
        assert tokens.dtype == "int32"
        assert tokens.tolist() == [0, *tokenizer.encode(document.text, add_special_tokens=False).ids, 1]


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # warnings of Levanter, on import
@pytest.mark.parametrize("split", ["train", "validation"])
def test_levanter_reads_the_cache(made: tuple[Path, dict[str, Any]], split: str) -> None:
    import numpy as np
    from levanter.store.cache import TreeCache

    output, result = made
    cache = TreeCache.load(str(output / split), {"input_ids": np.zeros(0, np.int32)})
    assert len(cache) == result[f"{split}_documents"]
    assert cache.flat_field_length("input_ids") == result[f"{split}_tokens"]
    rows = cache.get_batch_sync(range(len(cache)))
    ours = [row for shard in sorted((output / split).glob("0*")) for row in read_all(shard)]
    assert [row["input_ids"].tolist() for row in rows] == ours
    stats = json.loads((output / split / ".stats.json").read_text())
    assert stats == {"total_tokens": result[f"{split}_tokens"], "total_elements": result[f"{split}_documents"]}


def read_all(shard: Path) -> list[list[int]]:
    count = json.loads((shard / "shard_ledger.json").read_text())["total_num_rows"]
    return [tokens.tolist() for tokens in read_documents_of(str(shard), range(count))]


def test_a_special_token_written_in_a_text_stays_text(tokenizer_path: Path, tmp_path: Path) -> None:
    texts = ["a <|eos|> and <|bos|> of another", "plain"]
    write_documents(str(tmp_path / "d.jsonl.zst"), [Document(id=str(i), text=t) for i, t in enumerate(texts)])
    result = make(tmp_path, tokenizer_path, tmp_path / "out", validation_fraction=0.0)
    tokens = read_all(tmp_path / "out/train/00000")[0]
    assert (tokens.count(0), tokens.count(1)) == (1, 1)
    assert result["token_mismatches"] == 0
    assert not (tmp_path / "out/validation").exists()


def test_a_tokenizers_own_truncation_and_padding_change_no_token(
    made: tuple[Path, dict[str, Any]], documents_path: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    changed = with_settings(tokenizer_path, tmp_path / "changed")
    result = make(documents_path, Path(changed), tmp_path / "out")
    assert result == made[1]
    for split in ("train", "validation"):
        for shard in ("00000", "00001", "00002"):
            assert read_all(tmp_path / f"out/{split}/{shard}") == read_all(made[0] / split / shard)


def with_special_tokens(tokenizer_path: Path, folder: Path, **names: Any) -> Path:
    """Copy a tokenizer, with other names of special tokens in its config; None is null."""
    shutil.copytree(tokenizer_path, folder)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **names}))
    return folder


def test_a_tokenizer_whose_bos_token_is_null_writes_no_bos_as_levanter_does(
    tokenizer_path: Path, tmp_path: Path
) -> None:
    write_documents(str(tmp_path / "d.jsonl.zst"), [Document(id="a", text="plain"), Document(id="b", text="")])
    result = make(
        tmp_path / "d.jsonl.zst",
        with_special_tokens(tokenizer_path, tmp_path / "no bos", bos_token=None),
        tmp_path / "out",
        validation_fraction=0.0,
    )
    first, second = read_all(tmp_path / "out/train/00000")
    assert (0 in first, first[-1], second) == (False, 1, [1])
    assert result["token_mismatches"] == 0
    ledger = json.loads((tmp_path / "out/train/shard_ledger.json").read_text())
    assert ledger["metadata"]["preprocessor_metadata"]["append_bos"] is False


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"bos_token": "<s>"}, "bos_token='<s>', expected one of its tokens, or null if it has none"),
        ({"eos_token": None}, "eos_token=None, expected one of its tokens"),
    ],
)
def test_a_special_token_that_the_tokenizer_does_not_have_is_an_error(
    tokenizer_path: Path, tmp_path: Path, names: dict[str, Any], found: str
) -> None:
    write_documents(str(tmp_path / "d.jsonl.zst"), [Document(id="a", text="plain")])
    with pytest.raises(TokenizeError, match=found):
        make(tmp_path / "d.jsonl.zst", with_special_tokens(tokenizer_path, tmp_path / "t", **names), tmp_path / "out")


def test_a_config_that_does_not_name_the_bos_token_is_an_error(tokenizer_path: Path, tmp_path: Path) -> None:
    folder = with_special_tokens(tokenizer_path, tmp_path / "t")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "bos_token"}))
    write_documents(str(tmp_path / "d.jsonl.zst"), [Document(id="a", text="plain")])
    with pytest.raises(TokenizeError, match=r"tokenizer_config.json' has no 'bos_token', expected one of its tokens"):
        make(tmp_path / "d.jsonl.zst", folder, tmp_path / "out")


def test_the_same_documents_are_the_same_bytes_in_another_place(
    made: tuple[Path, dict[str, Any]], documents_path: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    shutil.copytree(documents_path, tmp_path / "other documents")
    shutil.copytree(tokenizer_path, tmp_path / "other tokenizer")
    make(tmp_path / "other documents", tmp_path / "other tokenizer", tmp_path / "out")
    assert data_files(tmp_path / "out") == data_files(made[0])


def test_a_page_on_both_sides_is_counted(
    made: tuple[Path, dict[str, Any]], documents_path: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shutil.copytree(made[0], output)
    shutil.rmtree(output / ".marin")
    make(documents_path, tokenizer_path, output)  # writes the notes of this place: the next call skips all shards
    names = output / "validation/00000/names.json"
    leaked = json.loads((output / "train/00002/names.json").read_text())
    written = json.loads(names.read_text())
    names.write_text(json.dumps({"ids": written["ids"], "pages": [leaked["pages"][0], *written["pages"][1:]]}))
    assert make(documents_path, tokenizer_path, output)["split_overlap"] == 1


def test_stored_tokens_that_differ_are_counted(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    from marin_assets.stages.tokenize.tokenize import _count_mismatches

    other = Tokenizer(models.BPE({"a": 7}, []))
    assert _count_mismatches(str(made[0] / "train/00000"), {0: "a", 3: "aa"}, other, 0, 1) == 2


def test_a_killed_stage_resumes_with_the_unfinished_shards(
    made: tuple[Path, dict[str, Any]], documents_path: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "from marin_assets.stages.tokenize import tokenize as stage\n"
        "stage.write_shard, write = (lambda p, *a: write(p, *a) or __import__('time').sleep(0.5)), stage.write_shard\n"
        "documents_path, tokenizer_path, output_path = sys.argv[1:]\n"
        "stage.tokenize(stage.TokenizeConfig(documents_path=documents_path, tokenizer_path=tokenizer_path,\n"
        f"    output_path=output_path, validation_fraction={FRACTION}))\n"
    )
    output = tmp_path / "out"
    arguments = [sys.executable, "-c", program, str(documents_path), str(tokenizer_path), str(output)]
    with subprocess.Popen(arguments, env=os.environ) as process:
        deadline = time.monotonic() + 60
        while len(list(output.glob("train/0*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert not (output / "train/shard_ledger.json").exists()
    ledgers = output.glob("train/0*/shard_ledger.json")  # of the second shard too, if that was killed in its sleep
    finished = min(ledgers, key=lambda ledger: ledger.stat().st_mtime_ns)
    before = finished.stat().st_mtime_ns
    assert make(documents_path, tokenizer_path, output) == made[1]
    assert finished.stat().st_mtime_ns == before
    assert data_files(output) == data_files(made[0])


def test_an_empty_validation_side_is_an_error(tokenizer_path: Path, tmp_path: Path) -> None:
    write_documents(str(tmp_path / "d.jsonl.zst"), [Document(id="a", text="one page")])
    with pytest.raises(TokenizeError, match=r"No document .* is on the validation side at validation_fraction=0.001"):
        make(tmp_path, tokenizer_path, tmp_path / "out", validation_fraction=0.001)


def test_a_text_that_is_not_unicode_is_an_error_that_names_its_document(tokenizer_path: Path, tmp_path: Path) -> None:
    import zstandard

    line = b'{"id": "broken", "text": "half a pair: \\ud83d", "metadata": {}}\n'
    (tmp_path / "d.jsonl.zst").write_bytes(zstandard.compress(line))
    with pytest.raises(ShardError, match=r"d\.jsonl\.zst' line 1 is not a document \(invalid_utf8"):
        make(tmp_path, tokenizer_path, tmp_path / "out", validation_fraction=0.0)


def test_a_folder_without_a_tokenizer_is_an_error(documents_path: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizeError, match=r"No tokenizer.json exists at"):
        make(documents_path, tmp_path, tmp_path / "out")


def test_a_store_that_tensorstore_does_not_know_is_an_error() -> None:
    assert kvstore_of("gs://bucket/a/b") == {"driver": "gcs", "bucket": "bucket", "path": "a/b/"}
    with pytest.raises(CacheError, match="'hdfs://x/y'"):
        kvstore_of("hdfs://x/y")


def test_tokenizing_loads_neither_jax_nor_levanter(documents_path: Path, tokenizer_path: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize\n"
        "assert not {'numpy', 'tokenizers', 'tensorstore', 'dagster', 'ray'} & set(sys.modules)\n"
        "documents_path, tokenizer_path, output_path = sys.argv[1:]\n"
        "tokenize(TokenizeConfig(documents_path=documents_path, tokenizer_path=tokenizer_path,\n"
        "    output_path=output_path, validation_fraction=0.1))\n"
        "assert not {'jax', 'levanter', 'transformers', 'torch', 'ray', 'dagster'} & set(sys.modules)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(documents_path), str(tokenizer_path), str(tmp_path / "out")], check=True
    )
