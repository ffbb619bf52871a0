"""A shard of scores that was interrupted continues after its finished blocks, unless their inputs have changed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shard_files import data_of, write_shards
from tiny_encoders import write_encoder

import marin_assets.stages.quality.score_by_encoder as stage
from marin_assets.documents import Document
from marin_assets.inference.journal import FOLDER
from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
from marin_assets.stages.quality.score_journal import ScoreJournal, remove_score_journals
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

SHARD = "part-00000-of-00001.parquet"
BLOCKS = [[(f"{block}/{i}", f"text {block} {i}") for i in range(3)] for block in range(3)]
SCORES = [[block + i / 7 for i in range(3)] for block in range(3)]
BLOCK = 16
"""Documents of a block in the stage's tests."""


def scored(output: str, *, blocks: int = 3, key: str = "weights", save_every: int = 1) -> list[int]:
    """Score the first blocks of BLOCKS. Returns the numbers of those that were not stored."""
    journal = ScoreJournal(output, SHARD, key, save_every=save_every)
    computed = []
    for number, block in enumerate(BLOCKS[:blocks]):
        if (scores := journal.next_scores(block)) is None:
            computed.append(number)
            journal.add(block, SCORES[number])
        else:
            assert scores == SCORES[number]
    return computed


def test_stored_blocks_are_not_computed_again(any_prefix: str) -> None:
    assert scored(any_prefix, blocks=2) == [0, 1]
    assert scored(any_prefix) == [2]
    assert scored(any_prefix) == []
    remove_score_journals(any_prefix)
    assert scored(any_prefix) == [0, 1, 2]


def test_fewer_documents_than_those_that_may_be_lost_are_not_stored(tmp_path: Path) -> None:
    assert scored(str(tmp_path), save_every=6) == [0, 1, 2]
    assert scored(str(tmp_path), save_every=6) == [2]


def test_blocks_of_another_classifier_are_computed_again(tmp_path: Path) -> None:
    scored(str(tmp_path))
    assert scored(str(tmp_path), key="other weights") == [0, 1, 2]
    assert scored(str(tmp_path), key="other weights") == []


@pytest.mark.parametrize(
    ("place", "document"), [(0, ("0/0", "text 0 0\ud800")), (1, ("another", "text 0 1")), (2, ("0/2", "text 0 "))]
)
def test_a_block_with_another_document_is_computed_again(
    place: int, document: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(str(tmp_path))
    changed = [document if i == place else other for i, other in enumerate(BLOCKS[0])]
    monkeypatch.setitem(globals(), "BLOCKS", [changed, *BLOCKS[1:]])
    assert scored(str(tmp_path)) == [0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("[1.0,", "[3.0,"),
        lambda text: text[:40],
        lambda _: "",
        lambda _: '{"place": 1}',
        lambda _: "[1]",
        lambda _: "{}",
    ],
)
def test_a_damaged_block_is_computed_again(damage: Any, tmp_path: Path) -> None:
    scored(str(tmp_path))
    part = tmp_path / FOLDER / SHARD / "000001.jsonl"
    before = part.read_text()
    part.write_text(damage(before))
    assert part.read_text() != before
    assert scored(str(tmp_path)) == [1]
    assert scored(str(tmp_path)) == []


@dataclass
class LengthScorer:
    """In place of a classifier: the score is the length of a text. Fails at a call of this number."""

    fails_at: int | None = None
    calls: list[str] = field(default_factory=list)
    labels: tuple[str, ...] = ("long",)
    form: str = "number"
    encoder: Any = field(default_factory=lambda: SimpleNamespace(most_characters=1000))

    def scores(self, texts: Sequence[str], label: str) -> list[float]:
        if len(self.calls) == self.fails_at:
            raise InterruptedError
        self.calls.append(texts[0])
        return [round(len(text) / 100_000, 6) for text in texts]


def config_of(folder: Path, documents: str, name: str) -> ScoreByEncoderConfig:
    config = ScoreByEncoderConfig(
        documents_path=documents, model_path=f"{folder}/model", output_path=f"{folder}/{name}", keep_fraction=0.5
    )
    return unwrap_versioned_value(config)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stage_that_was_interrupted_continues_and_ends_with_the_same_bytes(
    shards: int, tmp_path: Path, prose: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = write_shards(tmp_path / "documents", prose[: 10 * BLOCK - 5], shards)
    write_encoder(tmp_path / "model", ["A text."], labels=("long",))
    monkeypatch.setattr(stage, "SORTED", BLOCK)

    def run(name: str, **scorer: Any) -> list[str]:
        fake = LengthScorer(**scorer)
        monkeypatch.setattr(stage, "load_classifier", lambda *_: fake)
        if fake.fails_at is None:
            score_by_encoder(config_of(tmp_path, documents, name))
        else:
            with pytest.raises(Exception, match="InterruptedError"):
                score_by_encoder(config_of(tmp_path, documents, name))
        return fake.calls

    whole = run("whole")
    assert len(whole) >= 10
    first, second, third = run("again", fails_at=3), run("again", fails_at=4), run("again")
    assert first + second + third == whole, "no finished block is computed twice"
    assert data_of(tmp_path / "again") == data_of(tmp_path / "whole")
    assert not list((tmp_path / "again").rglob("*.jsonl")), "the blocks are removed"


KILL = """
import json, os, signal, sys
import marin_assets.stages.quality.score_by_encoder as stage
from marin_assets.inference.encoder.classifier import EncoderClassifier
from marin_resources.wire.config_json import decode
stage.SORTED, kill_at, calls = int(sys.argv[1]), int(sys.argv[2]), 0

def scores(self, texts, label, compute=EncoderClassifier.scores):
    global calls
    computed = compute(self, texts, label)
    with open(sys.argv[3], "a") as file:
        file.write(json.dumps(texts[0]) + chr(10))
    calls += 1
    if calls == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return computed

EncoderClassifier.scores = scores
stage.score_by_encoder(decode(json.loads(sys.argv[4])))
"""


@pytest.mark.long
def test_a_shard_that_is_killed_computes_one_block_again(
    tmp_path: Path, prose: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = write_shards(tmp_path / "documents", prose[: 12 * BLOCK - 3], 1)
    write_encoder(tmp_path / "model", [d.text for d in prose[:50]], labels=("LABEL_0",))
    log, draw = tmp_path / "computed", random.Random(7)

    def run(name: str, kill_at: int) -> int:
        config = json.dumps(encode(config_of(tmp_path, documents, name), "config"))
        command = [sys.executable, "-c", KILL, str(BLOCK), str(kill_at), str(log), config]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, -9), ended.stderr
        return ended.returncode

    assert run("whole", kill_at=0) == 0
    whole = log.read_text().splitlines()
    assert len(whole) == 12
    log.unlink()
    kills = 0
    while run("killed", kill_at=draw.randrange(1, 5) if kills < 3 else 0):
        kills += 1
    assert kills == 3
    computed = Counter(log.read_text().splitlines())
    assert set(computed) == set(whole)
    assert sum(computed.values()) == len(whole) + kills, "each kill costs the block that it interrupted"
    assert data_of(tmp_path / "killed") == data_of(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.jsonl"))
