"""Token caches in a bucket equal those on a disk, for any responses of the store and any death of a writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bucket_for_tests import BucketForTests

from marin_assets.stages.tokenize import cache
from marin_assets.stages.tokenize.cache import Names, read_documents_of, write_shard
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes, stored_files
from marin_resources.storage.paths import join

METADATA = {"tokenizer_sha256": "0", "vocab_size": 9}


def contents(path: str) -> dict[str, bytes]:
    """Name -> bytes of every data file, except the store's own files."""
    return {file.name: read_bytes(file.path) for file in stored_files(path)}


def shard_of(seed: int, documents: int = 300) -> tuple[np.ndarray, np.ndarray, Names]:
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(2, 2000, documents))
    names = [f"{seed}-{i}" for i in range(documents)]
    return random.integers(0, 9, int(ends[-1]), np.int32), ends, Names(names, names)


def test_documents_become_the_same_caches_on_every_store(documents_path: Path, any_prefix: str, tmp_path: Path) -> None:
    made = []
    for prefix in (str(tmp_path / "here"), any_prefix):
        tokenizer = TrainTokenizerConfig(
            documents_path=str(documents_path), output_path=join(prefix, "tokenizer"), vocab_size=600
        )
        train_tokenizer(unwrap_versioned_value(tokenizer))
        config = TokenizeConfig(
            documents_path=str(documents_path),
            tokenizer_path=join(prefix, "tokenizer"),
            output_path=join(prefix, "tokens"),
            validation_fraction=0.2,
        )
        made.append((tokenize(config), contents(prefix)))
    assert made[0] == made[1]
    assert made[1][0]["token_mismatches"] == 0


def test_a_cache_in_another_region_is_read_from_a_copy(gcs_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = join(gcs_prefix, "here"), join(gcs_prefix, "there")
    monkeypatch.setenv("MARIN_PREFIX", here)
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", f"here={here},there={there}")
    write_shard(join(there, "tokens/00000"), *shard_of(1), METADATA)
    mirrored = [list(row) for row in read_documents_of("mirror://tokens/00000", [0, 7])]
    assert mirrored == [list(row) for row in read_documents_of(join(there, "tokens/00000"), [0, 7])]
    assert all(file.name.startswith("tokens/00000/input_ids/") for file in stored_files(here))


@pytest.mark.parametrize("dies_before", ["names.json", "shard_ledger.json"])
def test_a_shard_resumed_after_a_kill_is_the_same(
    disk_or_gcs_prefix: str, dies_before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight, killed = join(disk_or_gcs_prefix, "straight/00000"), join(disk_or_gcs_prefix, "killed/00000")
    write_shard(straight, *shard_of(1), METADATA)
    with monkeypatch.context() as dying:
        for name in ("write_bytes", "write_json"):
            dying.setattr(cache, name, die_before(dies_before, getattr(cache, name)))
        with pytest.raises(KeyboardInterrupt):
            write_shard(killed, *shard_of(1), METADATA)
    write_shard(killed, *shard_of(1), METADATA)
    assert contents(killed) == contents(straight)


def die_before(name: str, write: Any) -> Any:
    def dying(path: str, value: Any, **more: Any) -> None:
        if path.endswith(name):
            raise KeyboardInterrupt
        write(path, value, **more)

    return dying


def test_a_stale_writer_changes_nothing(gcs_prefix: str) -> None:
    path = join(gcs_prefix, "train/00000")
    write_shard(path, *shard_of(1), METADATA)
    before = stamps(path)
    write_shard(path, *shard_of(1), METADATA)
    with pytest.raises(FileExistsError):
        write_shard(path, *shard_of(2), METADATA)
    assert stamps(path) == before


def stamps(path: str) -> Mapping[str, str]:
    return {file.name: file.stamp for file in stored_files(path)}


def test_failed_or_lost_responses_do_not_change_a_shard(gcs_bucket: BucketForTests, tmp_path: Path) -> None:
    tokens, ends, names = shard_of(1)
    write_shard(str(tmp_path / "00000"), tokens, ends, names, METADATA)
    gcs_bucket.fail(method="POST", match="data/zarr.json", status=429)
    gcs_bucket.fail(method="POST", match="data/c/0", status=503, after=True)
    gcs_bucket.drop(method="POST", match="offsets/c/0", after=True)
    path = join(gcs_bucket.prefix, "00000")
    write_shard(path, tokens, ends, names, METADATA)
    assert gcs_bucket.strikes_left() == 0
    assert contents(path) == contents(str(tmp_path / "00000"))
    [found] = read_documents_of(path, [7])
    assert found.tolist() == tokens[ends[6] : ends[7]].tolist()
