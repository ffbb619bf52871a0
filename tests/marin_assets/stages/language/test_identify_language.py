"""The language of a document: as fastText predicts it, kept by languages, scripts and scores."""

from __future__ import annotations

import importlib
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from man_pages import confusions, man_pages
from shard_files import write_shards

from marin_assets.documents import Document, list_shards, read_rows
from marin_assets.documents.languages.fineweb2 import fineweb2_languages, fineweb2_scores
from marin_assets.documents.languages.tags import LanguageTagError
from marin_assets.inference.fasttext_model import ClassifierError, load_classifier
from marin_assets.stages.language.identify_language import (
    LID_176_SHA256,
    IdentifyLanguageConfig,
    LanguageError,
    _model_file,
    identify_language,
)
from marin_assets.step.values import unwrap_versioned_value

LANGUAGES = {
    "ar": "arb_Arab", "cs": "ces_Latn", "de": "deu_Latn", "el": "ell_Grek", "en": "eng_Latn", "es": "spa_Latn",
    "fr": "fra_Latn", "he": "heb_Hebr", "hi": "hin_Deva", "it": "ita_Latn", "ja": "jpn_Jpan", "ko": "kor_Hang",
    "pl": "pol_Latn", "ru": "rus_Cyrl", "sv": "swe_Latn", "tr": "tur_Latn", "uk": "ukr_Cyrl", "zh": "cmn_Hani",
}  # fmt: skip
SERBIAN = {
    "srp_Cyrl": "Сви људи се рађају слободни и једнаки у достојанству и правима. Она су обдарена разумом и свешћу.",
    "srp_Latn": "Svi ljudi se rađaju slobodni i jednaki u dostojanstvu i pravima. Ona su obdarena razumom i svešću.",
}


def sentences(language: str) -> str:
    return "\n".join(importlib.import_module(f"spacy.lang.{language}.examples").sentences)


@pytest.fixture
def documents() -> list[Document]:
    return [Document(id=tag, text=sentences(language)) for language, tag in LANGUAGES.items()]


def identify(folder: Path, documents: list[Document], shards: int = 2, **changes: Any) -> dict[str, Any]:
    config = IdentifyLanguageConfig(
        documents_path=write_shards(folder / "documents", documents, shards),
        output_path=str(folder / "languages"),
        **changes,
    )
    return identify_language(unwrap_versioned_value(config))


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for shard in list_shards(str(folder / "languages")):
        for _, row in read_rows(shard):
            assert isinstance(row, dict)
            found[row["id"]] = row
    return found


def test_languages_in_ten_scripts_are_identified_with_fasttexts_score(
    tmp_path: Path, documents: list[Document]
) -> None:
    result = identify(tmp_path, documents, at_least=0.3)
    found = rows(tmp_path)
    assert {id: row["language"] for id, row in found.items()} == {document.id: document.id for document in documents}
    model = load_classifier(_model_file("lid.176.ftz"), LID_176_SHA256).model
    for document in documents:
        [(score, label)] = model.f.predict(document.text.replace("\n", " ") + "\n", 1, 0.0, "strict")
        assert (found[document.id]["label"], found[document.id]["score"]) == (label[9:], round(min(score, 1.0), 6))
    assert (result["documents"], result["kept"], result["languages"]) == (18, 18, 18)
    assert result["language_deu_Latn"] == 1


def test_documents_are_kept_by_language_and_score(tmp_path: Path, documents: list[Document]) -> None:
    texts = [*documents, Document(id="none", text="1234 !! \0 ??"), Document(id="empty", text="")]
    result = identify(tmp_path, texts, languages=["de", "fra", "jpn_Jpan"], at_least=0.3, thresholds={"fr": 1.0})
    found = rows(tmp_path)
    assert {id for id, row in found.items() if row["keep"]} == {"deu_Latn", "jpn_Jpan"}
    assert found["fra_Latn"]["reason"] == "low_score"
    assert found["eng_Latn"]["reason"] == "other_language"
    assert found["fra_Latn"]["value"] == found["fra_Latn"]["score"]
    assert found["eng_Latn"]["value"] is None, "a threshold of consolidate would keep it"
    assert found["none"] == {"id": "none", "keep": False, "reason": "no_text", "value": None}
    assert result == {
        "documents": 20, "kept": 2, "rejected": 18, "rejected_low_score": 1, "rejected_no_text": 2,
        "rejected_other_language": 15, "languages": 18, **{f"language_{tag}": 1 for tag in LANGUAGES.values()},
    }  # fmt: skip


def test_a_language_in_two_scripts_is_kept_in_one(tmp_path: Path) -> None:
    serbian = [Document(id=tag, text=text) for tag, text in SERBIAN.items()]
    identify(tmp_path, serbian, languages=["srp_Cyrl"], at_least=0, thresholds={"srp_Cyrl": 0.9, "srp": 0.1})
    found = rows(tmp_path)
    assert {id: (row["language"], row["keep"]) for id, row in found.items()} == {
        "srp_Cyrl": ("srp_Cyrl", True),
        "srp_Latn": ("srp_Latn", False),
    }


def test_of_a_mixed_page_languages_and_scripts_are_written_and_it_may_be_rejected(tmp_path: Path) -> None:
    mixed = Document(id="mixed", text=sentences("de") + "\n" + sentences("ru"))
    pure = Document(id="pure", text=sentences("ja"))
    result = identify(tmp_path, [mixed, pure], at_least=0.1, script_at_least=0.9)
    row = rows(tmp_path)["mixed"]
    assert row["language"] in ("deu_Latn", "rus_Cyrl")
    assert all(0.1 < row["scripts"][script] < 0.9 for script in ("Cyrl", "Latn"))
    assert (row["keep"], row["reason"]) == (False, "mixed_scripts")
    assert (result["kept"], result["rejected_mixed_scripts"]) == (1, 1)


def test_decisions_do_not_depend_on_shards_and_long_texts_may_be_cut(tmp_path: Path, documents: list[Document]) -> None:
    identify(tmp_path / "one", documents, 1)
    identify(tmp_path / "many", documents, 7)
    assert rows(tmp_path / "one") == rows(tmp_path / "many")
    long = Document(id="long", text=sentences("de") + "\n" + 2000 * sentences("ru"))
    identify(tmp_path / "cut", [long], characters=len(sentences("de")))
    assert rows(tmp_path / "cut")["long"]["scripts"] == {"Latn": 1.0}


def test_text_that_is_markup_of_fasttext_is_text(tmp_path: Path) -> None:
    text = "__label__ru </s> " + sentences("de")
    identify(tmp_path, [Document(id="a", text=text), Document(id="b", text="x" * 3_000_000)])
    assert rows(tmp_path)["a"]["language"] == "deu_Latn"


def test_the_result_names_the_twenty_most_frequent_languages(tmp_path: Path) -> None:
    names = ["am", "bg", "bn", "bo", "ca", "da", "eu", "fa", "fi", "gu", "hu", "hy", "kn", "ko", "ky", "lb", "lt", "ml"]
    names += ["ne", "nl", "pt", "ro", "sa", "si", "ta", "te", "vi"]
    result = identify(tmp_path, [Document(id=name, text=sentences(name)) for name in names], at_least=0)
    counted = {name: count for name, count in result.items() if name.startswith("language_")}
    assert len(counted) == 21
    assert counted["language_others"] == result["languages"] - 20 > 0
    assert sum(counted.values()) == result["documents"]


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"languages": "de"}, LanguageError, "languages is the text 'de', expected a list. Write ['de']."),
        ({"languages": ["german"]}, LanguageTagError, "The language is 'german', expected a code of ISO 639"),
        ({"languages": ["xx"]}, LanguageTagError, "The language is 'xx', expected a code of ISO 639"),
        ({"languages": ["deu_latn"]}, LanguageTagError, "The language is 'deu_latn', expected a code of ISO 639"),
        ({"languages": ["dex"]}, LanguageError, "The model has no language 'dex', expected one of"),
        ({"thresholds": {"dex": 0.5}}, LanguageError, "The model has no language 'dex', expected one of"),
        ({"thresholds": {"de": 65}}, LanguageError, "'de' is 65, expected a number from 0 to 1"),
        ({"at_least": True}, LanguageError, "'at_least' is True, expected a number from 0 to 1"),
        ({"characters": 0}, LanguageError, "characters is 0, expected a whole number above 0, or None for all."),
        ({"model_sha256": "abc"}, LanguageError, "model_sha256 is 'abc', expected 64 hex digits, or None for any."),
        ({"model_sha256": "0" * 64}, LanguageError, f"set model_sha256='{LID_176_SHA256}'."),
        ({"model_path": "/nowhere/lid.ftz"}, ClassifierError, "No model exists at '/nowhere/lid.ftz'."),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        identify(tmp_path, [Document(id="a", text="text")], **changes)
    assert sentence in str(caught.value)
    assert not list((tmp_path / "languages").glob("*"))


def test_another_model_is_taken_by_its_path(tmp_path: Path, documents: list[Document]) -> None:
    copy = tmp_path / "glotlid.bin"
    shutil.copy(_model_file("lid.176.ftz"), copy)
    identify(tmp_path / "own", documents, model_path=str(copy), model_sha256=None)
    identify(tmp_path / "packaged", documents)
    assert rows(tmp_path / "own") == rows(tmp_path / "packaged")


def test_fineweb2_has_a_score_for_each_language_in_each_script() -> None:
    assert fineweb2_scores(["deu"]) == {"deu_Latn": 0.821}
    assert fineweb2_scores(["srp"]).keys() == {"srp_Cyrl", "srp_Latn"}
    assert len(fineweb2_scores()) == len(fineweb2_languages()) > 200
    with pytest.raises(LanguageTagError, match="FineWeb-2's table has no language 'deu_Cyrl', expected one of"):
        fineweb2_scores(["deu_Cyrl"])


@pytest.mark.long
def test_99_of_100_manual_pages_in_25_languages_are_identified(tmp_path: Path) -> None:
    pages = man_pages()
    if len(pages) < 25:
        pytest.skip(f"Debian's packages manpages-* are not all here: there are pages of {len(pages)} languages")
    documents = [Document(id=f"{code}/{i}", text=text) for code, texts in pages.items() for i, text in enumerate(texts)]
    identify(tmp_path, documents, at_least=0)
    pairs = Counter((id[:3], row["language"][:3]) for id, row in rows(tmp_path).items())
    right = sum(count for (true, seen), count in pairs.items() if true == seen)
    assert right / len(documents) >= 0.99, confusions(pairs)
