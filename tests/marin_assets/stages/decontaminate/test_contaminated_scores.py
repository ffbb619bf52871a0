"""Questions that were planted in training documents are counted by task, and the scores are split by them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import (
    default_contamination,
    default_eval,
    default_questions,
    default_tokenize,
    default_train,
)
from marin_assets.documents import Document, list_shards, write_documents, write_rows
from marin_assets.documents.scores import COLUMNS
from marin_assets.mixtures import Mixture
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.decontaminate.contaminated_scores import ContaminatedScoresConfig, score_contaminated
from marin_assets.stages.decontaminate.find_contamination import (
    ContaminationError,
    FindContaminationConfig,
    find_contamination,
)
from marin_assets.stages.train.train_lm import FromHuggingFace, LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, unwrap_versioned_value, versioned
from marin_resources.storage.files import read_json

RNG = random.Random(0)
WORDS = sorted({"".join(RNG.choices("abcdefghijklmnop", k=6)) for _ in range(4000)})
TEXTS = [" ".join(RNG.sample(WORDS, 30)) for _ in range(8)]
"""Questions 0 to 5 are of the task "rivers", 6 and 7 of "hills"."""
SHORT = "too short to be searched"
RIGHT = [1, 1, 1, 0, 0, 1, 1, 0]


def noise(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=40))


def shouted(text: str) -> str:
    return "  ".join(f"*{word.upper()}*," for word in text.split())


PLANTED = {
    "verbatim": f"{noise(1)} {TEXTS[0]} {noise(2)}",
    "shouted": f"{noise(3)}\n{shouted(TEXTS[1])}\n{noise(4)}",
    "half": f"{noise(5)} {' '.join(TEXTS[2].split()[15:])} {noise(6)}",
    "again": TEXTS[2],
    "twelve": f"{noise(7)} {' '.join(TEXTS[3].split()[:12])} {noise(8)}",
    "clean": noise(9),
}


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """An evaluation as lm-eval's stage leaves it, and its questions."""
    tasks = ["rivers"] * 6 + ["hills"] * 2 + ["hills"]
    ids = [*range(6), 0, 1, 2]
    right = [*RIGHT, 1]
    samples = [
        {"task": task, "doc_id": id, "context": "?", "acc": float(is_right), "length": 3}
        for task, id, is_right in zip(tasks, ids, right, strict=True)
    ]
    write_rows(f"{tmp_path}/evaluation/samples.jsonl", samples)
    scores = [("rivers", "acc", 4 / 6), ("rivers", "length", 7.0), ("hills", "acc", 2 / 3)]
    lines = [",".join(COLUMNS), *(f"{task},{metric},{value},,6,0,1,True" for task, metric, value in scores)]
    (tmp_path / "evaluation/scores.csv").write_text("\n".join(lines) + "\n")
    groups = {"land": ["water", "hills"], "water": ["rivers"]}
    (tmp_path / "evaluation/results.json").write_text(json.dumps({"group_subtasks": groups}))
    questions = [
        {"id": f"{task}/{id}", "task": task, "doc_id": id, "text": text}
        for task, id, text in zip(tasks, ids, [*TEXTS, SHORT], strict=True)
    ]
    write_rows(f"{tmp_path}/questions/questions.jsonl", [*questions, {**questions[0], "id": "rivers/9", "doc_id": 9}])
    return tmp_path / "evaluation"


def search(folder: Path, name: str, documents: Mapping[str, str] | str) -> str:
    path = f"{folder}/{name}/documents" if not isinstance(documents, str) else documents
    if not isinstance(documents, str):
        rows = [Document(id=id, text=text) for id, text in documents.items()]
        write_documents(f"{path}/a.jsonl.zst", rows)
    config = FindContaminationConfig(
        documents_path=path,
        evaluations={"questions": f"{folder}/questions/questions.jsonl"},
        fields={"questions": ["text"]},
        output_path=f"{folder}/{name}/searched",
    )
    find_contamination(unwrap_versioned_value(config))
    return f"{folder}/{name}/searched"


def score(folder: Path, searched: Mapping[str, str], not_searched: Sequence[str] = ()) -> dict[str, Any]:
    config = ContaminatedScoresConfig(
        evaluation_path=f"{folder}/evaluation",
        questions_path=f"{folder}/questions",
        searched=dict(searched),
        output_path=f"{folder}/scored",
        not_searched=tuple(not_searched),
    )
    return score_contaminated(unwrap_versioned_value(config))


def test_planted_questions_are_counted_by_task_and_the_scores_are_split(tmp_path: Path, evaluation: Path) -> None:
    searched = {"web": search(tmp_path, "web", PLANTED), "books": search(tmp_path, "books", {"b": TEXTS[7]})}
    result = score(tmp_path, searched)
    assert (result["questions"], result["questions_contaminated"], result["contaminated_share"]) == (9, 4, 4 / 9)
    rivers, hills, land = (result["tasks"][task] for task in ("rivers", "hills", "land"))
    assert [rivers[key] for key in ("questions", "questions_contaminated", "contaminated_share")] == [6, 3, 0.5]
    assert (hills["questions_contaminated"], hills["questions_not_searchable"]) == (1, 1)
    assert (land["questions"], land["questions_contaminated"], land["scores"]) == (9, 4, {})
    assert rivers["scores"].keys() == {"acc"}, "a metric that is no mean over questions is left out"
    assert rivers["scores"]["acc"]["contaminated"] == {"value": 1.0, "error": 0.0, "questions": 3}
    clean = rivers["scores"]["acc"]["clean"]
    assert (clean["value"], clean["questions"]) == (pytest.approx(1 / 3), 3)
    assert clean["error"] == pytest.approx(math.sqrt((2 / 3) / 2 / 3)), "as lm-eval: the deviation of the sample"
    rows = [json.loads(line) for line in (tmp_path / "scored/contaminated.jsonl").read_text().splitlines()]
    assert [(row["task"], row["doc_id"], row["documents"]) for row in rows] == [
        ("rivers", 0, {"web": 1}),
        ("rivers", 1, {"web": 1}),
        ("rivers", 2, {"web": 2}),
        ("hills", 1, {"books": 1}),
    ]
    assert rows[2]["example"]["document"] == "again", "the document with the largest share"
    page = (tmp_path / "scored/contaminated_scores.html").read_text()
    assert "<h2>rivers</h2><p>3 contaminated questions.</p>" in page
    assert f"<mark>{' '.join(TEXTS[0].split()[:13])}</mark>" in page
    assert "Searched: web, books.</p>" in page
    assert "not searched:" not in page


def test_documents_that_were_removed_before_the_training_do_not_count(tmp_path: Path, evaluation: Path) -> None:
    before = search(tmp_path, "web", PLANTED)
    config = ConsolidateConfig(
        documents_path=f"{tmp_path}/web/documents",
        attributes=[Applied(name="contamination", path=before)],
        output_path=f"{tmp_path}/kept",
    )
    consolidate(unwrap_versioned_value(config))
    assert list_shards(f"{tmp_path}/kept")
    result = score(tmp_path, {"kept": search(tmp_path, "again", f"{tmp_path}/kept")}, ["chats <b>"])
    assert result["questions_contaminated"] == 0
    assert result["tasks"]["rivers"]["scores"]["acc"]["contaminated"] is None
    assert result["not_searched"] == ["chats <b>"]
    page = (tmp_path / "scored/contaminated_scores.html").read_text()
    assert "The model was trained on more, which was not searched: chats &lt;b&gt;." in page


def test_a_mistake_is_one_sentence(tmp_path: Path, evaluation: Path) -> None:
    web = search(tmp_path, "web", PLANTED)
    (tmp_path / "empty").mkdir()
    other = read_json(f"{web}/contamination.json")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/contamination.json").write_text(json.dumps({**other, "evaluations": {"quiz": {}}}))
    (tmp_path / "rule").mkdir()
    (tmp_path / "rule/contamination.json").write_text(json.dumps({**other, "rule": {"ngram": 8}}))
    for searched, sentence in (
        ({}, "searched is empty, expected"),
        ({"web": f"{tmp_path}/empty"}, "contamination.json' does not exist, for 'web'. Pass an output"),
        ({"web": f"{tmp_path}/other"}, "is of the evaluations ['quiz'], expected 'questions' alone."),
        ({"web": web, "x": f"{tmp_path}/rule"}, "'x' was searched with {'ngram': 8}, and 'web' with"),
    ):
        with pytest.raises(ContaminationError, match=r"\A.*\Z") as caught:
            score(tmp_path, searched)
        assert sentence in str(caught.value)
    questions = tmp_path / "questions/questions.jsonl"
    whole = questions.read_text()
    questions.write_text("".join(whole.splitlines(keepends=True)[1:]))
    with pytest.raises(ContaminationError, match=r"an answer to question 0 of 'rivers', which is not among"):
        score(tmp_path, {"web": web})
    questions.write_text(whole[:-20])
    with pytest.raises(ContaminationError, match=r"questions.jsonl' line 10 is damaged"):
        score(tmp_path, {"web": web})


TOKENIZER = "/tokenizers/some"


def training(name: str, tokenized: Any, **changes: Any) -> Step:
    return default_train(
        name, tokenized, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=TOKENIZER, **changes)
    )


def paths_of(step: Step) -> dict[str, Step]:
    return {node.step.name: node.step for node in build_graph([step])}


def test_the_documents_are_those_that_the_model_and_those_before_it_were_trained_on() -> None:
    sets = {name: default_tokenize(name, f"/documents/{name}", TOKENIZER) for name in ("web", "code", "watched")}
    paths = {name: output_path_of(step) for name, step in sets.items()}
    base = training("base", Mixture(components=paths, weights=versioned({"web": 0.5, "watched": 0.5, "code": 0.0})))
    last = training("last", {"code": sets["code"]}, start=FromHuggingFace(path=output_path_of(base, "hf")))
    steps = paths_of(default_contamination(default_eval(last, ["arc_easy"], mirror="/mirror")))
    found = {name: step.config for name, step in steps.items() if name.startswith("searched/")}
    assert found.keys() == {"searched/last/code", "searched/last/web", "searched/last/watched"}
    assert found["searched/last/web"].documents_path.name == "/documents/web"
    assert unwrap_versioned_value(found["searched/last/web"].validation_fraction) == 0.05
    assert unwrap_versioned_value(steps["contamination/last"].config.not_searched) == ()
    only = paths_of(default_contamination(default_eval(base, ["arc_easy"], mirror="/mirror")))
    assert "searched/base/code" not in only, "a set without a weight is not trained on"


def test_shared_questions_are_searched_once_for_all_models() -> None:
    tokenized = default_tokenize("web", "/documents/web", TOKENIZER)
    questions = default_questions("core", ["arc_easy"], mirror="/mirror")
    models = [training(name, tokenized, seed=versioned(seed)) for seed, name in enumerate(("one", "two"))]
    steps = [
        default_contamination(default_eval(model, ["arc_easy"], mirror="/mirror"), questions=questions)
        for model in models
    ]
    names = [node.step.name for node in build_graph(steps)]
    assert names.count("searched/core/web") == 1
    assert {"contamination/one", "contamination/two"} <= set(names)


def test_a_model_from_elsewhere_has_no_training_data_on_record() -> None:
    downloaded = InputName.hardcoded("models/llama")
    tokenized = default_tokenize("web", "/documents/web", TOKENIZER)
    tuned = training("tuned", tokenized, start=FromHuggingFace(path=downloaded))
    steps = paths_of(default_contamination(default_eval(tuned, ["arc_easy"], mirror="/mirror")))
    [sentence] = unwrap_versioned_value(steps["contamination/tuned"].config.not_searched)
    assert sentence == "the training data of models/llama, which are not on record"
    other = Step(name="models/llama", fn=score_contaminated, config=steps["contamination/tuned"].config)
    evaluation = default_eval(other, ["arc_easy"], mirror="/mirror")
    with pytest.raises(ConfigError, match=r"is no output of a training here, so its training data are not on record"):
        default_contamination(evaluation)
    given = paths_of(default_contamination(evaluation, training_documents={"pile": "/documents/pile"}))
    assert "searched/models/llama/pile" in given
    with pytest.raises(ConfigError, match=r"got the step 'checkpoints/tuned', expected one of default_eval"):
        default_contamination(tuned)
