"""Where people look at a score, they see how many of its questions the training data hold, or why nobody knows."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser_server import Browser, browsing
from stored_evaluations import choice_row, store_evaluation
from stored_outputs_for_browsing import store_output

from marin_assets.browse.stored import contamination
from marin_assets.documents import Document, write_documents, write_rows
from marin_assets.documents.scores import COLUMNS
from marin_assets.stages.decontaminate.contaminated_scores import ContaminatedScoresConfig, score_contaminated
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.output.commit import recorded
from marin_resources.types.output import Status
from marin_resources.types.record import Record

TRAIN = "marin_assets.stages.train.train_lm:train_lm"
RNG = random.Random(0)
WORDS = sorted({"".join(RNG.choices("abcdefghijklmnop", k=6)) for _ in range(2000)})
TEXTS = [" ".join(RNG.sample(WORDS, 20)) for _ in range(10)]
"""Questions 0 to 5 are of the task "rivers", the others of "hills"."""
PLACES = [("rivers", number) for number in range(6)] + [("hills", number) for number in range(4)]


def store_model(prefix: Path, name: str = "nano", fn_name: str = TRAIN) -> str:
    """A training, whose export was evaluated; return the path of the export."""
    return f"{prefix}/{store_output(str(prefix), f'checkpoints/{name}', {}, fn_name=fn_name)}/hf"


def store_scores(prefix: Path, name: str, model_path: str | None, **fields: Any) -> str:
    """An evaluation of ten questions."""
    rows = [choice_row(number, number % 2, task=task) for task, number in PLACES]
    below = store_evaluation(prefix, name, rows, config={"model_path": model_path}, **fields)
    values = {"rivers": 0.5, "hills": 0.5}
    lines = [",".join(COLUMNS), *(f"{task},acc,{value},,6,0,1,True" for task, value in values.items())]
    (prefix / below / "scores.csv").write_text("\n".join(lines) + "\n")
    (prefix / below / "results.json").write_text('{"group_subtasks": {"land": ["rivers", "hills"]}}')
    return below


def store_contamination(
    prefix: Path,
    name: str,
    evaluation: str,
    planted: Sequence[int],
    *,
    not_searched: Sequence[str] = (),
    version: str = "abc123",
    age_s: int = 0,
) -> str:
    """What the steps of `default_contamination` make of training documents with these questions."""
    work = prefix / "work" / f"{name}-{version}"
    questions = [
        {"id": f"{task}/{number}", "task": task, "doc_id": number, "text": text}
        for (task, number), text in zip(PLACES, TEXTS, strict=True)
    ]
    write_rows(f"{work}/questions/questions.jsonl", questions)
    documents = [Document(id=str(number), text=f"Before. {TEXTS[number]}.") for number in planted]
    write_documents(f"{work}/documents/a.jsonl.zst", [*documents, Document(id="other", text="Nothing of it.")])
    search = FindContaminationConfig(
        documents_path=f"{work}/documents",
        evaluations={"questions": f"{work}/questions/questions.jsonl"},
        fields={"questions": ["text"]},
        output_path=f"{work}/searched",
    )
    find_contamination(unwrap_versioned_value(search))
    below = f"contamination/{name}-{version}"
    config = ContaminatedScoresConfig(
        evaluation_path=f"{prefix}/{evaluation}",
        questions_path=f"{work}/questions",
        searched={"web": f"{work}/searched"},
        output_path=f"{prefix}/{below}",
        not_searched=tuple(not_searched),
    )
    result = score_contaminated(config)
    reads = [evaluation, f"work/{name}-{version}/questions", f"work/{name}-{version}/searched"]
    return store_output(
        str(prefix), f"contamination/{name}", {}, reads=reads, result=result, version=version, age_s=age_s
    )


def training_on_leaderboard(browser: Browser) -> dict[str, list[str]]:
    """Model -> what each cell says of the training data."""
    rows = re.findall(r"<tr data-row>.*?</tr>", browser.get("leaderboard").html, re.DOTALL)
    return {
        re.search(r"<bdi>(.*?)</bdi>", row)[1]: [  # type: ignore[index]
            re.sub(r"<[^>]+>", "", said) for said in re.findall(r'<small class="training.*?</small>', row)
        ]
        for row in rows
    }


def training_on_page(browser: Browser, page: str, /, **query: object) -> dict[str, str]:
    """Task -> what the page of an output or a file says of the training data."""
    html = browser.get(page, **query).html
    rows = re.findall(r'<tr><th scope="row"><bdi>(.*?)</bdi>.*?<small class="training[^>]*>(.*?)</small>', html)
    return {task: re.sub(r"<[^>]+>", "", said) for task, said in rows}


FOUND = {"rivers": "2 of 6 questions are in the training data", "hills": "0 of 4 questions are in the training data"}
"""Of an evaluation whose questions 1 and 4 were planted."""


def test_a_score_says_how_many_of_its_questions_the_training_data_hold(tmp_path: Path) -> None:
    evaluation = store_scores(tmp_path, "evaluation/nano", store_model(tmp_path))
    output = store_contamination(tmp_path, "nano", evaluation, [1, 4])
    (tmp_path / evaluation / "samples.html").write_text("<h1>Answers</h1>")
    with browsing(str(tmp_path)) as browser:
        assert training_on_page(browser, "output", path=evaluation) == FOUND
        assert training_on_page(browser, "file", path=f"{evaluation}/samples.html", page=1) == FOUND
        assert training_on_leaderboard(browser) == {"nano": ["0 of 4 in training", "2 of 6 in training"]}
        page = f"/file?path={output.replace('/', '%2F')}%2Fcontaminated_scores.html&amp;page=1"
        assert browser.get("leaderboard").html.count(f'href="{page}"') == 2
        shown = browser.send("GET", page.replace("&amp;", "&"))
        assert TEXTS[1][:40] in shown.text or TEXTS[1][:40] in shown.html
        assert "nobody looked" not in training_on_page(browser, "output", path=evaluation).values()


def test_nobody_looked_at_an_evaluation_without_an_output_of_its_own(tmp_path: Path) -> None:
    model = store_model(tmp_path)
    older = store_scores(tmp_path, "evaluation/nano", model, version="def456", age_s=100)
    newer = store_scores(tmp_path, "evaluation/nano", model)
    output = store_contamination(tmp_path, "nano", older, [1, 4])
    with browsing(str(tmp_path)) as browser:
        assert training_on_page(browser, "output", path=older) == FOUND
        assert set(training_on_page(browser, "output", path=newer).values()) == {"nobody looked"}
        assert training_on_leaderboard(browser) == {"nano": ["nobody looked"] * 2}
        shutil.rmtree(tmp_path / output)
        assert set(training_on_page(browser, "output", path=older).values()) == {"nobody looked"}, "the marker stays"


def test_the_newest_complete_output_counts(tmp_path: Path) -> None:
    evaluation = store_scores(tmp_path, "evaluation/nano", store_model(tmp_path))
    store_contamination(tmp_path, "nano", evaluation, [], age_s=100, version="aaa111")
    newest = store_contamination(tmp_path, "again", evaluation, [1, 4], not_searched=["chats <b>"])
    with browsing(str(tmp_path)) as browser:
        assert training_on_page(browser, "output", path=evaluation) == FOUND
        assert "trained on more, which was not searched: chats <b>." in browser.get("output", path=evaluation).text
        assert training_on_leaderboard(browser)["nano"][0] == "0 of 4 in training, of a part of the data"
        (tmp_path / newest / ".executor_info").write_text("{")
        said = training_on_page(browser, "output", path=evaluation)
        assert said["rivers"] == "0 of 6 questions are in the training data", "the one before the damaged one"


def test_the_training_data_of_a_downloaded_model_are_not_on_record(tmp_path: Path) -> None:
    downloaded = store_output(str(tmp_path), "models/llama", {}, fn_name="marin_assets.stages.download:download")
    of_downloaded = store_scores(tmp_path, "evaluation/llama", f"{tmp_path}/{downloaded}")
    of_endpoint = store_scores(tmp_path, "evaluation/served", None)
    tuned = store_model(tmp_path, "tuned", TRAIN.replace("train_lm", "train_dpo"))
    of_tuned = store_scores(tmp_path, "evaluation/tuned", tuned)
    with browsing(str(tmp_path)) as browser:
        for evaluation, sentence in (
            (of_downloaded, "its training data are not on record"),
            (of_endpoint, "its training data are not on record"),
            (of_tuned, "nobody looked"),
        ):
            assert set(training_on_page(browser, "output", path=evaluation).values()) == {sentence}
        store_contamination(tmp_path, "llama", of_downloaded, [1, 4])
        assert training_on_page(browser, "output", path=of_downloaded) == FOUND, "of documents that were given"


def test_the_evaluation_of_a_checkpoint_is_not_searched(tmp_path: Path) -> None:
    name = "checkpoint_evaluation/nano"
    below = store_scores(tmp_path, name, store_model(tmp_path))
    shutil.move(tmp_path / below, tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / below / "step-0000100")
    record = tmp_path / below / "step-0000100/.executor_info"
    record.write_text(record.read_text().replace('"name"', '"partition": "step-0000100", "name"', 1))
    with browsing(str(tmp_path)) as browser:
        said = training_on_page(browser, "output", path=f"{below}/step-0000100")
    assert set(said.values()) == {"nobody looked: the evaluations of checkpoints are not searched"}


@pytest.mark.parametrize("tasks", [3, {"rivers": 1}, {"rivers": {"questions": -1}}, {"rivers": {"questions": "<b>"}}])
def test_a_result_of_another_shape_says_nothing(tmp_path: Path, tasks: Any) -> None:
    evaluation = store_scores(tmp_path, "evaluation/nano", store_model(tmp_path))
    result: Mapping[str, Any] = {"tasks": tasks, "page": "../x", "not_searched": 3}
    store_output(str(tmp_path), "contamination/nano", {}, reads=[evaluation], result=result)
    with browsing(str(tmp_path)) as browser:
        assert set(training_on_page(browser, "output", path=evaluation).values()) == {"nobody looked"}


def test_the_records_of_a_large_prefix_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = store_model(tmp_path)
    for number in range(60):
        evaluation = store_scores(tmp_path, f"evaluation/m{number:03}", model)
        result = {"tasks": {"rivers": {"questions": 6, "questions_contaminated": 1, "questions_not_searchable": 0}}}
        store_output(str(tmp_path), f"contamination/m{number:03}", {}, reads=[evaluation], result=result)
    read: list[str] = []

    def counted(path: str, status: Status) -> Record | None:
        read.append(path)
        return recorded(path, status)

    monkeypatch.setattr(contamination, "recorded", counted)
    with browsing(str(tmp_path)) as browser:
        first = training_on_page(browser, "output", path=evaluation)
        assert first == {"rivers": "1 of 6 questions are in the training data", "hills": "nobody looked"}
        assert len(read) == 61
        assert training_on_page(browser, "output", path=evaluation) == first
        assert read[61:] == [f"{tmp_path}/contamination/m059-abc123"]
