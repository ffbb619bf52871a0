"""Questions about facts hidden in long contexts: lengths and depths, scores, and a model that answers them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from random_llama import write_random_llama

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.documents.caches.tokens import token_counter
from marin_assets.stages.evaluate.lm_eval import EvaluationError, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.tasks.needles.forms import ANSWER_TOKENS, FORMS
from marin_assets.stages.evaluate.tasks.needles.haystack import NeedleError, pieces_of
from marin_assets.stages.evaluate.tasks.needles.map_needles import MapNeedlesConfig, map_needles, wilson
from marin_assets.stages.evaluate.tasks.needles.scoring import share_of_answers
from marin_assets.stages.evaluate.tasks.needles.words import ADJECTIVES, NOUNS
from marin_assets.stages.evaluate.tasks.needles.write_needles import NeedlesConfig, write_needles
from marin_assets.step.values import unwrap_versioned_value

WINDOW = 640


@pytest.fixture(scope="module")
def tokenizer(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small model with a window of 640 tokens."""
    texts = [document.text for document in corpus]
    return write_random_llama(tmp_path_factory.mktemp("hf"), texts, WINDOW, vocab_size=4096)


def written(documents: str, tokenizer: str, output: Path, **fields: Any) -> dict[str, Any]:
    config = NeedlesConfig(
        documents_path=documents,
        tokenizer_path=tokenizer,
        output_path=str(output),
        **{"lengths": (512, 640), "questions": 2, **fields},
    )
    return write_needles(unwrap_versioned_value(config))


@pytest.fixture(scope="module")
def needles(documents_path: str, tokenizer: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("needles")
    written(documents_path, tokenizer, folder)
    return folder


def questions_of(folder: Path, form: str, length: int = 640) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"needle_{form}_{length}.jsonl").read_text().splitlines()]


def test_every_question_fills_its_length_and_has_its_answers_in_it(needles: Path, tokenizer: str) -> None:
    count = token_counter(tokenizer)
    for form in FORMS:
        for length in (512, 640):
            questions = questions_of(needles, form, length)
            assert len(questions) == 10
            assert len({question["prompt"] for question in questions}) == 10
            for question in questions:
                tokens = count([question["prompt"]])[0] + 1
                assert question["tokens"] == tokens
                assert length - 100 < tokens + ANSWER_TOKENS[form] <= length
                assert all(answer in question["prompt"] for answer in question["answers"])


def test_the_needle_is_at_its_depth_once_and_the_answer_is_in_no_other_place(needles: Path) -> None:
    for form in ("single", "multikey"):
        for question in questions_of(needles, form):
            (answer,) = question["answers"]
            assert question["prompt"].count(answer) == 1
            (key,) = re.findall(r"text have for the ([a-z]+ [a-z]+)\?", question["prompt"])
            text = question["prompt"].split("\n\n", 1)[1].rpartition("\n\nQuestion")[0]
            needle = f"The secret number of the {key} is {answer}."
            before, after = text.split(needle)
            share = len(before) / (len(before) + len(after))
            assert abs(share - question["depth"]) < 0.25, (share, question["depth"])
            if question["depth"] in (0.0, 1.0) and form == "single":
                assert share == question["depth"]
    assert all(
        question["prompt"].count("The secret number of") == 4 for question in questions_of(needles, "multiquery")
    )


def test_the_forms_hide_what_they_request(needles: Path) -> None:
    for question in questions_of(needles, "multivalue"):
        assert len(set(question["answers"])) == 4
        keys = set(re.findall(r"The secret number of the ([a-z]+ [a-z]+) is \d", question["prompt"]))
        assert len(keys) == 1
    for question in questions_of(needles, "tracking"):
        chain = re.findall(r"VAR ([A-Z]{5}) = (?:VAR )?(\w+)\.", question["prompt"])
        assert [name for name, _ in chain] == question["answers"], "in their order"
        assert [source for _, source in chain][1:] == question["answers"][:-1]
    for question in questions_of(needles, "common"):
        listed = re.findall(r"\d+\. ([a-z]+)", question["prompt"])
        often = {word for word in listed if listed.count(word) == 6}
        assert often == set(question["answers"])
        assert len(often) == 10
        assert len(set(listed)) >= 20


def test_the_same_config_writes_the_same_bytes_and_another_seed_others(
    documents_path: str, tokenizer: str, needles: Path, tmp_path: Path
) -> None:
    written(documents_path, tokenizer, tmp_path / "again")
    names = sorted(file.name for file in needles.iterdir())
    assert len(names) == 2 * 2 * len(FORMS) + 1
    assert all((tmp_path / "again" / name).read_bytes() == (needles / name).read_bytes() for name in names)
    written(documents_path, tokenizer, tmp_path / "other", seed=1, forms=("single",))
    assert questions_of(tmp_path / "other", "single") != questions_of(needles, "single")


def test_a_value_counts_as_a_word_and_several_by_their_share() -> None:
    assert share_of_answers({"answers": ["123"]}, [" It is 123, I think."]) == {"acc": 1.0}
    assert share_of_answers({"answers": ["123"]}, ["1234"]) == {"acc": 0.0}
    assert share_of_answers({"answers": ["ABC", "XYZ", "art", "sea"]}, ["abc, party, sea"]) == {"acc": 0.5}


def test_a_long_text_without_sentences_is_cut_into_pieces_and_keys_are_distinct() -> None:
    assert [len(piece.split()) for piece in pieces_of("word\n" * 100)] == [40, 40, 20]
    assert pieces_of("One.  Two! \n\n Three") == ["One.", "Two!", "Three"]
    assert pieces_of(" \n") == []
    assert (len(set(ADJECTIVES)), len(set(NOUNS))) == (40, 40)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"lengths": ()}, "Needles have the lengths (), expected one at least, and each once."),
        ({"lengths": (640, 640)}, "Needles have the lengths (640, 640), expected one at least, and each once."),
        ({"lengths": (20,)}, "Needles have the length 20, expected 64 tokens or more."),
        ({"lengths": (True,)}, "Needles have the length True, expected 64 tokens or more."),
        ({"depths": (50,)}, "Needles have the depth 50, expected a share from 0 (in front) to 1 (at the end)."),
        ({"depths": (float("nan"),)}, "Needles have the depth nan, expected a share"),
        ({"forms": ("singel",)}, "Needles have the form 'singel', expected one of"),
        ({"questions": 0}, "Needles have 0 questions of each depth, expected 1 at least."),
        (
            {"lengths": (128,), "forms": ("multiquery",)},
            "A context of 128 tokens has no room for a question of the form 'multiquery': it has",
        ),
        (
            {"lengths": (256,), "forms": ("common",)},
            "A context of 256 tokens has no room for a list with 10 words beside",
        ),
        (
            {"lengths": (10**7,), "forms": ("single",)},
            "tokens without duplicates, expected 10000000 at least, the longest",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    fields: Any, sentence: str, documents_path: str, tokenizer: str, tmp_path: Path
) -> None:
    with pytest.raises(NeedleError) as caught:
        written(documents_path, tokenizer, tmp_path, **fields)
    assert sentence in str(caught.value)


def test_empty_documents_are_refused_and_duplicates_are_left_out(
    corpus: list[Document], tokenizer: str, tmp_path: Path
) -> None:
    empty = [Document(id=str(n), text=" \n", source="s", metadata={}) for n in range(3)]
    write_documents(str(tmp_path / "empty" / shard_name(0, 1)), empty)
    with pytest.raises(NeedleError, match="have 0 tokens without duplicates, expected 640 at least"):
        written(str(tmp_path / "empty"), tokenizer, tmp_path / "out")
    write_documents(str(tmp_path / "twice" / shard_name(0, 1)), [*corpus[:2] * 30, *corpus[2:40]])
    result = written(str(tmp_path / "twice"), tokenizer, tmp_path / "out", forms=("single",))
    assert result["duplicates"] == 58


def evaluate(tokenizer: str, needles: Path, output: Path, *tasks: str, **fields: Any) -> dict[str, Any]:
    config = LmEvalConfig(
        model_path=tokenizer, output_path=str(output), include_path=str(needles), tasks=tasks, **fields
    )
    return evaluate_with_lm_eval(unwrap_versioned_value(config))


def test_the_map_has_the_accuracy_of_each_length_and_depth(needles: Path, tmp_path: Path) -> None:
    rows = []
    for form, right in (("single", lambda question: question["depth"] >= 0.5), ("tracking", lambda question: True)):
        for number, question in enumerate(questions_of(needles, form)):
            rows.append({"task": f"all/needle_{form}_640", "doc_id": number, "acc": float(right(question))})
    (tmp_path / "evaluation").mkdir()
    samples = tmp_path / "evaluation/samples.jsonl"
    samples.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"task": "other", "doc_id": 0, "acc": 1.0}]))
    config = MapNeedlesConfig(
        evaluation_path=str(tmp_path / "evaluation"), needles_path=str(needles), output_path=str(tmp_path / "out")
    )
    result = map_needles(config)
    assert result["accuracy"] == {"single": {"640": pytest.approx(0.6)}, "tracking": {"640": 1.0}}
    assert (result["questions"], result["worst"]["depth"], result["worst"]["accuracy"]) == (20, 0.0, 0.0)
    table = list(csv.DictReader((tmp_path / "out/needles.csv").open()))
    assert [(row["form"], row["depth"], row["accuracy"]) for row in table] == [
        *(("single", str(depth), str(float(depth >= 0.5))) for depth in (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("tracking", "", "1.0"),
    ]
    assert (tmp_path / "out/plots/needles.png").read_bytes().startswith(b"\x89PNG")
    samples.write_text(json.dumps({**rows[0], "doc_id": 10}) + "\n")
    with pytest.raises(NeedleError, match=r"has the question 10 in .*, and 10 in .*Pass the step that wrote them"):
        map_needles(config)
    samples.write_text(json.dumps({"task": "other", "doc_id": 0, "acc": 1.0}) + "\n")
    with pytest.raises(NeedleError, match="has no answer to a question of"):
        map_needles(config)
    samples.unlink()
    with pytest.raises(NeedleError, match=r"has no 'samples.jsonl', expected an evaluation"):
        map_needles(config)


def test_wilsons_interval_is_that_of_its_formula() -> None:
    assert wilson(1.0, 10) == (pytest.approx(0.7225, abs=1e-4), 1.0)
    assert wilson(0.5, 100) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))


@pytest.mark.long  # imports and compiling
def test_a_model_answers_and_a_longer_context_than_its_window_is_refused(
    needles: Path, tokenizer: str, tmp_path: Path
) -> None:
    tasks = ("needle_single_512", "needle_tracking_512")
    result = evaluate(tokenizer, needles, tmp_path / "out", *tasks, max_eval_instances=2)
    assert set(tasks) == set(result["scores"])
    assert result["cut_contexts"] == 0
    config = MapNeedlesConfig(
        evaluation_path=str(tmp_path / "out"), needles_path=str(needles), output_path=str(tmp_path / "map")
    )
    assert map_needles(config)["questions"] == 4
    with pytest.raises(
        EvaluationError, match=r"1 of 2 tasks cannot run .*Task 'needle_single_640': A question has \d+ tok"
    ):
        evaluate(tokenizer, needles, tmp_path / "cut", "needle_single_512", "needle_single_640", max_length=560)
    assert not (tmp_path / "cut/samples.jsonl").exists()
