"""A document with 13 consecutive words of a question is found, one with 12 is not; the kept documents are clean."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from counted_reads import counted_reads

from marin_assets.documents import Document, list_shards, shard_name, write_documents
from marin_assets.documents.attributes import Decision, read_attributes
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.decontaminate.ngram_index import build_index
from marin_assets.stages.decontaminate.questions import Question, QuestionError
from marin_assets.stages.decontaminate.words import words_of
from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_held_out_set
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json, write_bytes

RNG = random.Random(0)
WORDS = sorted({"".join(RNG.choices("abcdefghijklmnop", k=6)) for _ in range(4000)})
CTX, TRUE, FALSE = (" ".join(RNG.sample(WORDS, n)) for n in (20, 10, 14))


def noise(n: int, seed: int = 1) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=n))


def question(id: int = 0, ctx: str = CTX, choices: Sequence[str] = (FALSE, TRUE), gold: int = 1) -> dict[str, Any]:
    return {"id": id, "page": "p", "ctx": ctx, "choices": list(choices), "gold": gold}


def write_questions(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    write_bytes(str(path), b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return str(path)


def find(
    folder: Path, documents: Sequence[Document] | Path, rows: Sequence[dict[str, Any]] | None = None, **changes: Any
) -> dict[str, Any]:
    shards = changes.pop("shards", 2)
    if isinstance(documents, Path):
        documents_path = str(documents)
    else:
        documents_path = f"{folder}/documents"
        for i in range(shards):
            write_documents(f"{documents_path}/{shard_name(i, shards)}", documents[i::shards])
    if "evaluations" not in changes:
        changes["evaluations"] = {"quiz": write_questions(folder / "questions.jsonl", rows or [question()])}
    config = FindContaminationConfig(documents_path=documents_path, output_path=f"{folder}/found", **changes)
    return find_contamination(unwrap_versioned_value(config))


def found(folder: Path) -> dict[str, Decision]:
    return {id: decision for shard in list_shards(f"{folder}/found") for id, decision in read_attributes(shard)}


def texts(*texts: str) -> list[Document]:
    return [Document(id=str(i), text=text) for i, text in enumerate(texts)]


def test_thirteen_words_in_a_row_are_found_and_twelve_are_not(tmp_path: Path) -> None:
    words = f"{CTX} {TRUE}".split()
    pieces = [" ".join([noise(50), *words[4 : 4 + n], noise(50, 2)]) for n in (13, 12)]
    result = find(tmp_path, texts(*pieces))
    decisions = found(tmp_path)
    assert decisions["0"] == Decision(keep=False, reason="contaminated", value=round(1 / 18, 6))
    assert decisions["1"] == Decision(keep=True, value=0.0)
    assert (result["documents"], result["kept"], result["rejected"], result["rejected_contaminated"]) == (2, 1, 1, 1)
    assert (result["questions"], result["questions_contaminated"], result["contaminated_share"]) == (1, 1, 1.0)
    assert (result["ngrams"], result["documents_held_out"]) == (18, 0)


def test_what_every_shard_needs_is_read_once_a_process_however_many_shards_exist(tmp_path: Path) -> None:
    documents = texts(*[noise(60, seed) for seed in range(6)])
    read = {}
    for shards in (2, 6):
        with counted_reads() as counts:
            find(tmp_path / str(shards), documents, shards=shards, ignore_more_than=1)
        read[shards] = {
            name: counts[f"{tmp_path}/{shards}/found/{name}"] for name in ("ignored.npy", ".marin/ngrams.npz")
        }
    assert read[2] == read[6]
    assert all(read[2].values())


def test_letters_case_and_punctuation_do_not_matter_and_order_does(tmp_path: Path) -> None:
    words = f"{CTX} {TRUE}".split()
    shouted = "* " + ",\n**".join(word.upper() for word in words[:13]) + "!"
    result = find(tmp_path, texts(shouted, "_".join(words[:13]), " ".join(words[12::-1]), f"x{' '.join(words[:13])}"))
    assert [decision.keep for decision in found(tmp_path).values()] == [False, True, False, True]
    assert result["rejected"] == 2


def test_the_true_choice_counts_with_its_context_and_the_wrong_one_does_not(tmp_path: Path) -> None:
    seam = [*CTX.split()[-7:], *TRUE.split()[:6]]
    find(tmp_path, texts(FALSE, f"{CTX.split()[-1]} {FALSE}", " ".join(seam)))
    assert [found(tmp_path)[str(i)].keep for i in range(3)] == [True, True, False]


def test_the_report_lists_the_questions_and_their_documents(tmp_path: Path) -> None:
    other = question(7, noise(30, 5))
    whole = f"{CTX} {TRUE}"
    part = " ".join(whole.split()[2:16])
    result = find(tmp_path, texts(f"{noise(9)} {part}", noise(40), f"{whole}. {noise(5)}"), [question(), other])
    report = read_json(f"{tmp_path}/found/contamination.json")
    assert report["questions_found"] == [
        {
            "evaluation": "quiz",
            "id": "0",
            "text": whole,
            "ngrams": 18,
            "ngrams_found": 18,
            "documents": 2,
            "example": {
                "document": "2",
                "share": 1.0,
                "words": " ".join(whole.split()[:13]),
                "before": "",
                "after": f"{' '.join(whole.split()[13:])} {noise(5)}",
            },
        }
    ]
    assert report["evaluations"]["quiz"]["questions_contaminated"] == 1 == result["questions_contaminated_quiz"]
    assert (report["questions"], report["contaminated_share"]) == (2, 0.5)
    assert report["rule"]["ngram"] == 13


def test_a_common_phrase_is_tolerated_by_matches_or_by_share(tmp_path: Path) -> None:
    whole = f"{CTX} {TRUE}".split()
    documents = texts(" ".join(whole[:14]), " ".join(whole[:22]))  # 2 and 10 of 18 n-grams
    rules: dict[str, dict[str, Any]] = {"a": {"min_matches": 3}, "b": {"min_share": 0.5}, "c": {"min_share": 10 / 18}}
    for name, rule in rules.items():
        find(tmp_path / name, documents, **rule)
        assert [decision.keep for decision in found(tmp_path / name).values()] == [True, False]
    find(tmp_path / "d", documents, min_share=0.9)
    assert [decision.value for decision in found(tmp_path / "d").values()] == [round(2 / 18, 6), round(10 / 18, 6)]


def test_a_short_question_is_matched_as_a_whole_and_a_shorter_one_is_counted(tmp_path: Path) -> None:
    eight, seven = noise(8, 3), noise(7, 4)
    rows = [question(0, eight, [""], 0), question(1, seven, [""], 0)]
    result = find(tmp_path, texts(f"{noise(20)} {eight} {seven}", " ".join(eight.split()[1:])), rows, min_matches=5)
    assert [decision.keep for decision in found(tmp_path).values()] == [False, True]
    assert (result["questions_contaminated"], result["questions_too_short"]) == (1, 1)


@pytest.mark.parametrize(
    "whole",
    [
        "徳川家康が江戸幕府を開いたのは西暦何年のことですか",
        "中华人民共和国的首都是哪一座城市请选择正确答案",
        "สามเหลี่ยมมุมฉากมีด้านตรงข้ามมุมฉากยาวเท่าใด",
    ],
)
def test_a_question_in_a_script_without_spaces_is_found(tmp_path: Path, whole: str) -> None:
    documents = texts(f"{noise(9)}{whole}{noise(9)}", f"{noise(9)} {whole[:8]}、{noise(9)}", whole[::-1])
    result = find(tmp_path, documents, [question(0, whole, [""], 0)])
    assert result["questions_too_short"] == 0
    assert [decision.keep for decision in found(tmp_path).values()] == [False, True, True]


def test_common_ngrams_are_ignored_and_questions_without_others_are_counted(tmp_path: Path) -> None:
    licence = noise(13, 8)
    rows = [question(0, licence, [""], 0), question(1, f"{licence} {noise(20, 9)}", [""], 0)]
    documents = texts(*(f"{noise(30, i)} {licence}" for i in range(4)), f"{noise(12, 8)} {noise(20, 9)}")
    assert find(tmp_path / "all", documents, rows)["rejected"] == 5
    assert find(tmp_path / "four", documents, rows, ignore_more_than=4)["rejected"] == 5
    result = find(tmp_path / "three", documents, rows, ignore_more_than=3)
    assert (result["rejected"], result["ngrams_ignored"], result["questions_too_common"]) == (1, 1, 1)
    assert found(tmp_path / "three")["4"].value == round(8 / 20, 6)
    assert read_json(f"{tmp_path}/three/found/contamination.json")["too_common"] == [["quiz", "0"]]


def test_the_validation_side_is_kept_and_counted(tmp_path: Path) -> None:
    pages = [Document(id=f"{i}", text=f"{CTX} {TRUE}", metadata={"page": f"page-{i}"}) for i in range(40)]
    result = find(tmp_path, pages, validation_fraction=0.3, ignore_more_than=39)
    assert 0 < result["documents_held_out"] == result["kept"] < 40
    assert result["rejected"] == 40 - result["kept"]
    assert find(tmp_path / "b", pages, validation_fraction=0.3, ignore_more_than=result["rejected"] - 1)["kept"] == 40


def test_fields_name_the_text_of_other_evaluations(tmp_path: Path) -> None:
    evaluations = {
        "qa": write_questions(tmp_path / "qa.jsonl", [{"q": CTX, "answers": [TRUE]}]),
        "books": str(tmp_path / "books"),
    }
    write_documents(f"{tmp_path}/books/a.jsonl.gz", texts(noise(50, 11)))
    fields = {"qa": ["q", "answers"], "books": ["text"]}
    result = find(tmp_path, texts(TRUE, CTX, noise(50, 11)), evaluations=evaluations, fields=fields)
    assert (result["questions_contaminated_qa"], result["questions_contaminated_books"]) == (1, 1)
    assert result["rejected"] == 2


def pydoc_documents() -> list[Document]:
    from pydoc_data.topics import topics

    return [
        Document(id=f"{name}/{i}", text=part, metadata={"page": name})
        for name, text in sorted(topics.items())
        for i, part in enumerate(re.findall(r"(?s).{1,3000}", text))
    ]


def test_real_documents_are_clean_after_consolidation(tmp_path: Path) -> None:
    """Questions of held-out pages. Some training pages quote them, others share a common phrase."""
    documents = pydoc_documents()
    phrase = "see the section on the standard type hierarchy of the reference manual for all of the details"
    documents += [Document(id=f"boiler/{i}", text=f"{noise(40, i)} {phrase}") for i in range(30)]
    write_documents(f"{tmp_path}/documents/a.jsonl.zst", documents)
    held_out = HeldOutConfig(
        documents_path=f"{tmp_path}/documents",
        output_path=f"{tmp_path}/held_out",
        validation_fraction=0.3,
        questions=50,
    )
    make_held_out_set(unwrap_versioned_value(held_out))
    questions = list(map(json.loads, (tmp_path / "held_out/questions.jsonl").read_text().splitlines()))
    quoting = [
        Document(id=f"quote/{q['id']}", text=f"{noise(99, q['id'])} {q['ctx']} {q['choices'][q['gold']]}")
        for q in questions[:20]
    ]
    write_documents(f"{tmp_path}/documents/b.jsonl.zst", quoting)
    questions.append(question(999, phrase, ["and so on"], 0))
    shared: dict[str, Any] = {
        "evaluations": {"held_out": write_questions(tmp_path / "questions.jsonl", questions)},
        "validation_fraction": 0.3,
    }
    first = find(tmp_path, tmp_path / "documents", ignore_more_than=10, **shared)
    assert first["questions_contaminated"] >= 20
    assert first["ngrams_ignored"] > 0
    rejected = {id for id, decision in found(tmp_path).items() if not decision.keep}
    assert len({d.id for d in quoting} & rejected) >= 10
    assert not any(id.startswith("boiler/") for id in rejected)

    config = ConsolidateConfig(
        documents_path=f"{tmp_path}/documents",
        attributes=[Applied(name="contamination", path=f"{tmp_path}/found")],
        output_path=f"{tmp_path}/clean",
    )
    assert consolidate(unwrap_versioned_value(config))["documents"] == first["documents"]
    again = find(tmp_path / "again", tmp_path / "clean", ignored_path=f"{tmp_path}/found", **shared)
    assert (again["questions_contaminated"], again["rejected"], again["contaminated_share"]) == (0, 0, 0.0)
    assert again["documents"] == first["kept"]
    assert again["ngrams_ignored"] == first["ngrams_ignored"]


@pytest.mark.long
def test_the_bytes_are_the_same_here_and_on_ray_and_the_findings_for_any_shards(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    documents = pydoc_documents()
    rows = [
        question(i, " ".join(d.text.split()[:40]), [" ".join(d.text.split()[40:50])], 0)
        for i, d in enumerate(documents[::7])
    ]
    request.getfixturevalue("shared_ray")
    on_ray = find(tmp_path / "ray", documents, rows, ignore_more_than=2)
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    assert find(tmp_path / "here", documents, rows, ignore_more_than=2) == on_ray
    assert data_of(tmp_path / "here/found") == data_of(tmp_path / "ray/found")
    assert find(tmp_path / "five", documents, rows, ignore_more_than=2, shards=5) == on_ray
    assert found(tmp_path / "five") == found(tmp_path / "here")


def data_of(folder: Path) -> dict[str, bytes]:
    named = ((path.relative_to(folder), path) for path in folder.rglob("*") if path.is_file())
    return {str(name): path.read_bytes() for name, path in named if not str(name).startswith(".")}


def test_the_index_finds_the_same_as_a_plain_search() -> None:
    """Words of two letters: n-grams repeat, overlap, and share words; documents longer than one block."""
    rng = random.Random(3)

    def text(n: int) -> str:
        return " ".join(rng.choices("ab", k=n))

    questions = [Question(evaluation="e", id=str(i), text=text(rng.randint(1, 12))) for i in range(60)]
    index = build_index(questions, 5, 3)
    for _ in range(50):
        words = text(rng.randint(0, 60)).split()
        match = index.match(words)
        rows, holders = index.holders_of(match.ngrams)
        got = {(int(holder), int(match.places[row])) for row, holder in zip(rows, holders, strict=True)}
        expected = set()
        for number, one in enumerate(questions):
            own = one.text.split()
            n = min(5, len(own))
            for gram in {tuple(own[i : i + n]) for i in range(len(own) - n + 1)} if n >= 3 else ():
                places = [i for i in range(len(words) - n + 1) if tuple(words[i : i + n]) == gram]
                expected |= {(number, places[0])} if places else set()
        assert got == expected


def test_a_long_document_is_searched_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_assets.stages.decontaminate.ngram_index.WORDS_AT_ONCE", 10)
    whole = f"{CTX} {TRUE}"
    index = build_index([Question(evaluation="e", id="0", text=whole)], 13, 8)
    for before in range(25):
        match = index.match(f"{noise(before)} {whole} {noise(7)}".split())
        assert sorted(match.places.tolist()) == list(range(before, before + 18))


@pytest.mark.parametrize(
    "text", ["Naïve café, CAFÉ", "İstanbul ǅ ß ﬁne", "中文，文字。a_b", "a\u00a0b\u2028c", "x" * 10, ""]
)
def test_words_beyond_ascii_are_letters_and_digits_too(text: str) -> None:
    assert words_of(text) == words_of(f"{text} é")[: len(words_of(text))]
    assert all(words_of(word) == [word] for word in words_of(text))


def test_ascii_and_other_text_have_the_same_words() -> None:
    text = "".join(map(chr, range(128))) + " Don't stop_me 3.14 --x"
    assert [*words_of(text), "é"] == words_of(text + " é")


@pytest.mark.parametrize("unit", ["a ", "a", "_", "ä ", "\n", f"{CTX} {TRUE} "])
def test_time_is_linear_in_the_document(unit: str) -> None:
    index = build_index([Question(evaluation="e", id="0", text=f"{CTX} {TRUE}")], 13, 8)

    def seconds(length: int) -> float:
        text = (unit * (length // len(unit) + 1))[:length]
        started = time.process_time()
        index.match(words_of(text))
        return time.process_time() - started

    seconds(1000)
    assert seconds(4_000_000) < 12 * seconds(1_000_000) + 0.1


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (b'{"question": "?"}', r"line 2 has the fields \['question'\], expected the text 'ctx'"),
        (b'{"ctx": "a", "choices": ["b"], "gold": 1}', "line 2 has gold 1, expected the index of one of its 1 choices"),
        (b"{", "line 2 is no question .invalid_json"),
    ],
)
def test_a_row_that_is_not_a_question_is_an_error(row: bytes, sentence: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/quiz.jsonl"
    write_bytes(path, json.dumps(question()).encode() + b"\n" + row + b"\n")
    with pytest.raises(QuestionError, match=sentence):
        find(tmp_path, texts("x"), evaluations={"quiz": path})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"evaluations": {}}, "evaluations is empty"),
        ({"ngram": 5}, "ngram is 5 and min_ngram 8"),
        ({"min_share": 1.5}, "min_share 1.5"),
        ({"min_matches": 0}, "min_matches is 0"),
        ({"ignore_more_than": 0}, "ignore_more_than is 0"),
        ({"ignore_more_than": 5, "ignored_path": "x"}, "ignore_more_than is 5 and ignored_path 'x'"),
        ({"ignored_path": "nowhere"}, "'nowhere/ignored.npy' does not exist"),
        ({"validation_fraction": 2}, "validation_fraction is 2"),
        ({"fields": {"other": ["text"]}}, "fields has 'other', expected one of the evaluations"),
        ({"fields": {"quiz": ["gold"]}}, "line 1 has 'gold' = 1, expected a text or a list of texts"),
        ({"min_ngram": 40, "ngram": 40}, "None of the 1 questions has 40 words"),
    ],
)
def test_a_config_that_finds_nothing_is_an_error(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        find(tmp_path, texts("x"), **changes)


PEAK = """
import sys
from pathlib import Path
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.step.values import unwrap_versioned_value
folder, questions = sys.argv[1:]
config = FindContaminationConfig(
    documents_path=f"{folder}/documents", evaluations={"quiz": questions}, output_path=f"{folder}/out",
    ignore_more_than=10,
)
documents = find_contamination(unwrap_versioned_value(config))["documents"]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(documents, status["VmHWM"].split()[0])  # getrusage would return the peak of the parent process
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    documents = pydoc_documents()
    questions = write_questions(tmp_path / "questions.jsonl", [question()])
    peaks = {}
    for times in (12, 120):  # fewer do not fill the buffers
        folder = tmp_path / str(times)
        copies = (Document(id=f"{d.id}-{n}", text=d.text) for n in range(times) for d in documents)
        write_documents(f"{folder}/documents/a.jsonl.zst", copies)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(folder), questions], capture_output=True, text=True, check=True
        )
        count, peaks[times] = map(int, done.stdout.split())
        assert count == times * len(documents)
    assert peaks[120] <= 1.2 * peaks[12]
