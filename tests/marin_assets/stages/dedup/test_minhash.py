from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.stages.dedup import shingles
from marin_assets.stages.dedup.minhash import FINEWEB, NEMO_CURATOR, ZYDA, MinHash, MinHashError, Signer, require_sound
from marin_assets.stages.dedup.shingles import shingle_hashes, word_hashes

PAIRS = 3000


def words_of(text: str) -> list[int]:
    return word_hashes(text).tolist()


@settings(deadline=None)  # a busy machine is slow at times
@given(st.text() | st.text("aB1 9.\u00e9\u0301_\u4e00\u2764\ufe0f"))
def test_words_are_runs_of_letters_and_numbers(text: str) -> None:
    runs = "".join(map(shown, unicodedata.normalize("NFKC", text).casefold())).split()
    numbered: dict[str, int] = {}
    for run, hashed in zip(runs, words_of(text), strict=True):
        assert numbered.setdefault(run, hashed) == hashed
    assert len(set(numbered.values())) == len(numbered)


def shown(character: str) -> str:
    """Return the value of a character, with spaces where words end."""
    category = unicodedata.category(character)
    if category == "Nd":
        character = "0"
    if "VARIATION SELECTOR" in unicodedata.name(character, "") or category[0] not in "LMN" or category == "Me":
        return " "
    alone = any(first <= ord(character) <= last for first, last in shingles.WITHOUT_SPACES)
    return f" {character} " if alone else character


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, World!", "  hello --\tworld "),
        ("caf\u00e9 na\u00efve", "cafe\u0301 nai\u0308ve"),  # NFC and NFD
        ("\ufb01le \uff21", "file a"),  # a ligature, a full-width letter
        ("on 24.12.1999", "on 01.02.2024"),
        ("\u0661\u0662 apples", "12 apples"),
        ("I \u2764\ufe0f you", "I \u2764 you"),
    ],
)
def test_two_spellings_of_one_text_are_equal(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


@pytest.mark.parametrize(
    ("one", "other"), [("caf\u00e9", "cafe"), ("page 9", "page 10"), ("don't", "dont"), ("ab", "ba")]
)
def test_different_texts_are_not_equal(one: str, other: str) -> None:
    assert words_of(one) != words_of(other)


def test_a_vowel_sign_does_not_end_a_word_and_a_han_character_is_one() -> None:
    assert len(words_of("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e")) == 2
    assert len(words_of("\u6211\u5011abc\u5b78")) == 4


def test_a_shingle_is_a_run_of_words_in_their_order() -> None:
    a, b, c = (shingle_hashes(text, 2).tolist() for text in ("one two three", "Two, three", "three two"))
    assert len(a) == 2
    assert a[1:] == b != c


def test_a_text_shorter_than_a_shingle_is_one() -> None:
    assert shingle_hashes("one two", 5).tolist() == shingle_hashes("One Two.", 5).tolist()
    assert shingle_hashes("one two", 5).tolist() != shingle_hashes("one two three", 5).tolist()
    assert len(shingle_hashes(" ...\n", 5)) == 0


def test_pieces_of_a_long_text_are_hashed_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{i:b} \u00e9" for i in range(3000))
    whole = words_of(text)
    monkeypatch.setattr(shingles, "PIECE_CHARACTERS", 100)  # the tables are longer than needed
    assert words_of(text) == whole
    assert len(words_of("x" * 1000)) == 10  # no place to cut


@pytest.mark.parametrize(
    "minhash",
    [
        pytest.param(FINEWEB, id="fineweb"),
        pytest.param(NEMO_CURATOR, id="nemo curator", marks=pytest.mark.long),
        pytest.param(ZYDA, id="zyda", marks=pytest.mark.long),
    ],
)
def test_pairs_become_candidates_as_often_as_the_formula_says(minhash: MinHash) -> None:
    dice, signer = np.random.default_rng(3), Signer(minhash)
    for similarity in (0.5, 0.6, 0.7, 0.8, 0.9):
        union, shared = 100, round(100 * similarity)
        signatures = []
        for _ in range(PAIRS):
            drawn = dice.integers(0, 2**32, union, dtype=np.uint32)
            half = shared + (union - shared) // 2
            signatures += [signer.of_shingles(drawn[:half]), signer.of_shingles(np.r_[drawn[:shared], drawn[half:]])]
        keys = signer.band_keys(np.stack(signatures))
        found = (keys[::2] == keys[1::2]).any(axis=1).mean()
        assert abs(found - minhash.inclusion_probability(shared / union)) < 0.03  # three standard errors and more


def test_signatures_never_change() -> None:
    """Signatures of all machines are compared with each other, so these numbers must never change."""
    signature = Signer(MinHash(ngram=2, bands=2, rows=2)).signature(
        "The quick brown fox jumps over the lazy dog, twice."
    )
    assert signature is not None
    assert signature.tolist() == GOLDEN


def test_a_seed_is_another_set_of_permutations() -> None:
    one, other = (Signer(MinHash(seed=seed)).signature("some text of a few words") for seed in (1, 2))
    assert one is not None
    assert other is not None
    assert not (one == other).any()


def test_a_long_document_is_signed_in_chunks() -> None:
    drawn = np.random.default_rng(1).integers(0, 2**32, 5000, dtype=np.uint32)
    signer = Signer(FINEWEB)
    parts = np.stack([signer.of_shingles(drawn[i : i + 777]) for i in range(0, 5000, 777)])
    assert (parts.min(axis=0) == signer.of_shingles(drawn)).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ngram": 0}, r"minhash\.ngram is 0, expected a whole number from 1 to 100"),
        ({"bands": 2.5}, r"minhash\.bands is 2\.5"),
        ({"rows": True}, r"minhash\.rows is True"),
        ({"seed": -1}, r"minhash\.seed is -1"),
        ({"bands": 100, "rows": 100}, "10000 permutations, expected at most 4096"),
    ],
)
def test_settings_out_of_bounds_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MinHashError, match=sentence):
        require_sound(MinHash(**changes))


GOLDEN = [235589384, 49487438, 152618912, 26944455]
