"""Personal data and secrets are found by their kinds, and replaced by a function of the match."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from personal_texts import GENERATORS, labelled_texts
from shard_files import data_of, write_shards

from marin_assets.documents import Document, list_shards, read_documents, read_rows
from marin_assets.stages.personal_data.find_personal_data import FindPersonalDataConfig, find_personal_data
from marin_assets.stages.personal_data.matches import KINDS, PersonalDataError, find_matches, replaced
from marin_assets.stages.personal_data.replace_personal_data import ReplacePersonalDataConfig, replace_personal_data
from marin_assets.step.values import unwrap_versioned_value

LABELLED = list(labelled_texts())
WITHOUT_PHONES = tuple(kind for kind in KINDS if kind != "phone")


@pytest.mark.parametrize("kind", GENERATORS)
def test_precision_is_at_least_99_and_recall_97_in_100(kind: str) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for labelled in LABELLED:
        matches = [(m.kind, m.start, m.end) for m in find_matches(labelled.text, WITHOUT_PHONES) if m.kind == kind]
        expected = [(kind, *labelled.span)] if labelled.span and labelled.kind == kind else []
        counts.update(right=len({*matches} & {*expected}), found=len(matches), expected=len(expected))
        wrong += [(labelled.text, matches)] if matches != expected else []
    assert counts["expected"] >= 300
    assert counts["right"] / counts["found"] >= 0.99, wrong[:5]
    assert counts["right"] / counts["expected"] >= 0.97, wrong[:5]


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("Call +49 30 901820, not 2026-11-28, 978-3-16-148410-0 or 1.2.3", [("phone", "+49 30 901820")]),
        ("(415) 555-2671", [("phone", "(415) 555-2671")]),
        ("https://x.org/?to=ada@b.com&x=1 and _x-y.z@b.com", [("email", "ada@b.com"), ("email", "_x-y.z@b.com")]),
        ("http://93.184.216.34/ and IP:9.9.9.9", [("ipv4", "93.184.216.34"), ("ipv4", "9.9.9.9")]),
        ("8.8.8.8-8.8.4.4, 1.1.1.1/1.0.0.1", [("ipv4", ip) for ip in ("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1")]),
        ("postgres://ada:s3cr3t@db.org/x", [("secret", "s3cr3t")]),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow==\n-----END PRIVATE KEY-----!", [("secret", "-----BEGIN PRIVATE KEY-----"
          "\nMIIEow==\n-----END PRIVATE KEY-----")]),
        ("a@b.com,c@d.org;e@f.net.", [("email", "a@b.com"), ("email", "c@d.org"), ("email", "e@f.net")]),
        ("5555 5555 5555 4444 and 4111-1111-1111-1111", [("card", "5555 5555 5555 4444"),
                                                         ("card", "4111-1111-1111-1111")]),
    ],
)  # fmt: skip
def test_matches_end_where_they_end(text: str, matches: list[tuple[str, str]]) -> None:
    assert [(m.kind, text[m.start : m.end]) for m in find_matches(text, KINDS, ["US"])] == matches


def test_a_replacement_is_a_function_of_the_match_and_is_not_found_again() -> None:
    replacements: dict[tuple[str, str], set[str]] = {}
    for labelled in LABELLED:
        matches = find_matches(labelled.text, KINDS)
        text = replaced(labelled.text, matches)
        assert find_matches(text, KINDS) == []
        for match in matches:
            value = labelled.text[match.start : match.end]
            replacements.setdefault((match.kind, value), set()).add(replaced(value, find_matches(value, [match.kind])))
    assert all(len(texts) == 1 for texts in replacements.values())
    emails = {text for (kind, _), [text] in replacements.items() if kind == "email"}
    assert emails == {"email@example.com", "firstname.lastname@example.com"}
    assert len({text for (kind, _), [text] in replacements.items() if kind == "ipv4"}) > 100


def documents() -> list[Document]:
    return [Document(id=str(i), text=labelled.text) for i, labelled in enumerate(LABELLED[::7])]


def find(folder: Path, **changes: Any) -> dict[str, Any]:
    path = write_shards(folder / "documents", documents(), 3)
    config = FindPersonalDataConfig(documents_path=path, output_path=str(folder / "found"), **changes)
    return find_personal_data(unwrap_versioned_value(config))


def test_spans_are_attributes_and_documents_may_be_rejected(tmp_path: Path) -> None:
    result = find(tmp_path, kinds=KINDS, at_most=0)
    rows = {row["id"]: row for path in list_shards(str(tmp_path / "found")) for _, row in read_rows(path)}
    for document in documents():
        matches = find_matches(document.text, KINDS)
        row = rows[document.id]
        assert row.get("spans", []) == [[match.kind, match.start, match.end] for match in matches]
        assert (row["keep"], row["value"]) == (not matches, len(matches))
    assert result["rejected"] == result["rejected_personal_data"] == result["documents_with_matches"] > 100
    assert result["documents"] == result["kept"] + result["rejected"] == len(documents())
    assert find(tmp_path / "counted", kinds=KINDS)["rejected"] == 0


def test_texts_are_rewritten_equally_in_any_shards_and_the_rest_stays(tmp_path: Path) -> None:
    texts = {}
    for shards in (1, 5):
        folder = tmp_path / str(shards)
        path = write_shards(folder / "documents", documents(), shards)
        config = ReplacePersonalDataConfig(documents_path=path, output_path=str(folder / "out"), kinds=KINDS)
        result = replace_personal_data(unwrap_versioned_value(config))
        out = [document for shard in list_shards(str(folder / "out")) for document in read_documents(shard)]
        texts[shards] = {document.id: document.text for document in out}
    assert texts[1] == texts[5]
    assert result["documents"] == len(texts[1]) == len(documents())
    before = {document.id: document.text for document in documents()}
    changed = {id for id, text in texts[1].items() if text != before[id]}
    assert len(changed) == result["documents_changed"] > 100
    assert result["characters_out"] == sum(map(len, texts[1].values()))
    assert sum(count for name, count in result.items() if name.startswith("matches_")) >= len(changed)
    again = ReplacePersonalDataConfig(
        documents_path=str(tmp_path / "1/out"), output_path=str(tmp_path / "again"), kinds=KINDS
    )
    assert replace_personal_data(unwrap_versioned_value(again))["documents_changed"] == 0
    assert data_of(tmp_path / "again") == data_of(tmp_path / "1/out")


@pytest.mark.parametrize("kind", WITHOUT_PHONES)
def test_hostile_texts_take_time_that_grows_with_their_length(kind: str) -> None:
    pieces = ["@a.", "a@", "1.1.1.1.", "4 ", "a.b@c.d", "://a:", "://a:b@", "-----BEGIN PRIVATE KEY-----", "DE89 "]
    pieces += ["2001:", "eyJ", "sk-", "@a.b-", "AKIA", "xoxb-1", "4111 1111 ", "GB82 WEST ", "a.", "\u0301@"]
    for piece in pieces:
        took = []
        for size in (50_000, 200_000):
            text = piece * (size // len(piece))
            began = time.process_time()
            find_matches(text, [kind])
            took.append(time.process_time() - began)
        assert took[1] < max(12 * took[0], 0.5), (piece, took)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kinds": "email"}, "kinds is the text 'email', expected a list. Write ['email']."),
        ({"kinds": []}, "kinds is empty, expected some of secret, email"),
        ({"kinds": ["e-mail"]}, "kinds has 'e-mail', expected one of"),
        ({"phone_regions": ["us"]}, "phone_regions has 'us', expected countries such as 'US' and 'DE'."),
        ({"at_most": -1}, "at_most is -1, expected a whole number from 0, or None to count."),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PersonalDataError) as caught:
        find(tmp_path, **changes)
    assert sentence in str(caught.value)
