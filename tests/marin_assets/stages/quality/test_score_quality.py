"""Documents are kept by their score: from a threshold on, or an exact share of them."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shard_files import data_of, write_shards

from marin_assets.documents import Document, list_shards
from marin_assets.documents.attributes import read_attributes
from marin_assets.inference.fasttext_model import ClassifierError
from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
from marin_assets.stages.quality.threshold import ThresholdError
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.step.values import unwrap_versioned_value


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, prose: list[Document], names: list[Document]) -> str:
    folder = tmp_path_factory.mktemp("model")
    examples = {
        "positive": write_shards(folder / "positive", prose, 1),
        "negative": write_shards(folder / "negative", names, 1),
    }
    config = TrainFastTextConfig(
        examples=examples, output_path=f"{folder}/model", validation_fraction=0.2, bucket=5000, dim=8
    )
    train_fasttext(unwrap_versioned_value(config))
    return f"{folder}/model"


def score(folder: Path, model: str, documents: list[Document], shards: int = 3, **changes: Any) -> dict[str, Any]:
    config = ScoreQualityConfig(
        documents_path=write_shards(folder / "documents", documents, shards),
        model_path=model,
        output_path=f"{folder}/judged",
        **changes,
    )
    return score_quality(unwrap_versioned_value(config))


def decisions(folder: Path) -> dict[str, tuple[bool, float]]:
    return {
        id: (decision.keep, decision.value or 0.0)
        for shard in list_shards(f"{folder}/judged")
        for id, decision in read_attributes(shard)
    }


def test_documents_below_the_score_are_rejected(
    where: str, tmp_path: Path, model: str, prose: list[Document], names: list[Document]
) -> None:
    result = score(tmp_path, model, [*prose, *names], at_least=0.5)
    found = decisions(tmp_path)
    assert result["documents"] == len(prose) + len(names) == len(found)
    assert result["documents"] == result["kept"] + result["rejected"]
    assert result["rejected"] == result["rejected_low_quality"] == sum(not keep for keep, _ in found.values())
    assert result["threshold"] == 0.5
    assert all(keep == (value >= 0.5) and value == round(value, 6) for keep, value in found.values())
    assert sum(found[d.id][0] for d in prose) > 0.98 * len(prose)
    assert sum(found[d.id][0] for d in names) < 0.2 * len(names)


@pytest.mark.parametrize("fraction", [0.9, 0.7, 1 / 3, 1e-9, 1])
def test_the_share_that_is_kept_is_exact(
    fraction: float, tmp_path: Path, model: str, prose: list[Document], names: list[Document]
) -> None:
    documents = [*prose[:70], *names[:30]]
    result = score(tmp_path, model, documents, keep_fraction=fraction)
    scores = sorted((value for _, value in decisions(tmp_path).values()), reverse=True)
    wanted = {0.9: 90, 0.7: 70, 1 / 3: 34, 1e-9: 1, 1: 100}[fraction]
    assert result["threshold"] == scores[wanted - 1]
    assert result["kept"] == sum(score >= scores[wanted - 1] for score in scores)
    assert result["kept"] - wanted == sum(score == scores[wanted - 1] for score in scores[wanted:])
    assert (result["score_max"], result["score_min"]) == (scores[0], scores[-1])
    assert (result["score_p10"], result["score_p50"]) == (sorted(scores)[9], sorted(scores)[49])
    assert result["score_mean"] == pytest.approx(math.fsum(scores) / 100)


def test_documents_that_tie_at_the_threshold_are_all_kept(tmp_path: Path, model: str, prose: list[Document]) -> None:
    same = [Document(id=str(i), text=prose[0].text) for i in range(10)]
    result = score(tmp_path, model, same, keep_fraction=0.1)
    assert (result["kept"], result["rejected"], result["rejected_low_quality"]) == (10, 0, 0)


@pytest.mark.long
def test_the_bytes_are_the_same_here_and_on_ray_and_the_kept_set_for_any_shards(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model: str,
    prose: list[Document],
    names: list[Document],
) -> None:
    documents = [*prose[:100], *names]
    request.getfixturevalue("shared_ray")
    on_ray = score(tmp_path / "ray", model, documents, keep_fraction=0.6)
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    assert score(tmp_path / "here", model, documents, keep_fraction=0.6) == on_ray
    assert data_of(tmp_path / "here/judged") == data_of(tmp_path / "ray/judged")
    assert score(tmp_path / "five", model, documents, shards=5, keep_fraction=0.6) == on_ray
    assert decisions(tmp_path / "five") == decisions(tmp_path / "here")


def test_a_bare_fasttext_file_is_accepted_and_nothing_is_printed(
    tmp_path: Path, model: str, prose: list[Document], capfd: pytest.CaptureFixture[str]
) -> None:
    result = score(tmp_path, f"{model}/model.bin", prose[:20], at_least=0.018112)
    assert result["kept"] == 20
    assert capfd.readouterr() == ("", "")


def test_empty_shards_and_empty_texts_get_decisions(tmp_path: Path, model: str, prose: list[Document]) -> None:
    result = score(tmp_path, model, [prose[0], Document(id="none", text="")], shards=4, at_least=0.5)
    assert result["documents"] == 2
    assert len(list_shards(f"{tmp_path}/judged")) == 4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "at_least is None and keep_fraction None, expected exactly one"),
        ({"at_least": 0.5, "keep_fraction": 0.5}, "expected exactly one"),
        ({"at_least": 0.0}, "at_least is 0.0, expected a number above 0, at most 1"),
        ({"keep_fraction": float("nan")}, "keep_fraction is nan, expected a number"),
        ({"keep_fraction": 2}, "keep_fraction is 2, expected a number"),
        ({"label": "good", "at_least": 0.5}, "has no label 'good', expected one of"),
    ],
)
def test_an_invalid_threshold_is_an_error(
    changes: dict[str, Any], sentence: str, tmp_path: Path, model: str, prose: list[Document]
) -> None:
    with pytest.raises((ThresholdError, ClassifierError), match=sentence):
        score(tmp_path, model, prose[:3], **changes)


def test_no_documents_are_an_error(tmp_path: Path, model: str) -> None:
    with pytest.raises(ThresholdError, match="has no documents to score"):
        score(tmp_path, model, [], keep_fraction=0.5)


PEAK = """
import sys
from pathlib import Path
from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
from marin_assets.step.values import unwrap_versioned_value
folder, model = sys.argv[1:]
config = ScoreQualityConfig(
    documents_path=f"{folder}/documents", model_path=model, output_path=f"{folder}/out", keep_fraction=0.9
)
documents = score_quality(unwrap_versioned_value(config))["documents"]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(documents, status["VmHWM"].split()[0])  # getrusage would return the peak of the parent process
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_input(tmp_path: Path, model: str, prose: list[Document]) -> None:
    peaks = {}
    for times in (4, 40):
        folder = tmp_path / str(times)
        copies = [Document(id=f"{d.id}-{n}", text=d.text) for n in range(times) for d in prose]
        write_shards(folder / "documents", copies, 1)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(folder), model], capture_output=True, text=True, check=True
        )
        count, peaks[times] = map(int, done.stdout.split())
        assert count == len(copies)
    assert peaks[40] <= 1.2 * peaks[4]
