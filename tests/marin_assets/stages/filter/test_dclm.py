"""DCLM's filters: the verdicts and texts of its published code, on texts that any machine can generate."""

import hashlib
import json
import re
import time
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from golden_texts import golden_pages
from hypothesis import example, given
from hypothesis import strategies as st

from marin_assets.documents import Document, read_documents, write_documents
from marin_assets.documents.attributes import read_attributes
from marin_assets.stages.filter.dclm.addresses import begins_with_domain, host_addresses, ip_addresses
from marin_assets.stages.filter.dclm.words import count_tokens, unicode_words
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents, filter_text
from marin_assets.stages.filter.registry import DCLM, dclm_filters, filter_of_thresholds, named
from marin_assets.stages.filter.repetition import NGrams
from marin_assets.stages.filter.spans import CutText, complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

GOLDEN = json.loads(Path(__file__).with_name("golden_dclm.json").read_text())
DOMAINS = files("marin_assets.stages.filter.dclm").joinpath("top_level_domains.txt").read_text(encoding="utf-8").split()
NINE = "One two three four five six seven eight nine"
PROSE = "The cat and the dog have to be with that one, and nobody knows for how long they will.\n"


def decided(name: str, text: str, **changes: Any) -> tuple[str, str]:
    """Return (text after the filter, reason)."""
    thresholds = unwrap_versioned_value(named(name, **changes).thresholds)
    decision = filter_of_thresholds(thresholds)(TextStatistics(text, splitter_named("fast")), thresholds)
    return "".join(text[a:b] for a, b in complement(decision.cut, len(text))), decision.reason


@pytest.mark.parametrize("name", DCLM)
def test_every_verdict_and_text_is_that_of_dclms_code(name: str) -> None:
    pages = golden_pages()
    assert hashlib.sha256("\0".join(pages).encode()).hexdigest() == GOLDEN["texts_sha256"], "other texts"
    different = []
    for number, (page, (keep, expected)) in enumerate(
        zip(pages, GOLDEN["decisions"][name.partition("@")[0]], strict=True)
    ):
        text, reason = decided(name, page)
        left = zlib.crc32(text.encode()) if text != page else None
        if (not reason, left if keep else None) != (keep, expected):
            different.append((number, reason))
    assert different == []


def test_the_four_run_in_one_pass_and_cut_places_of_the_document_itself(tmp_path: Path) -> None:
    kept = " ".join(dict.fromkeys(word for word in golden_pages()[0].split() if word.isalpha())) + " with the end.\n"
    text = "The page is at http://example.com/a?b=c today.\n\n\n\n3 likes\n" + kept
    documents = tmp_path / "documents/a.jsonl.zst"
    write_documents(str(documents), [Document(id="1", text=text), Document(id="2", text="Too short.")])
    config = FilterDocumentsConfig(
        documents_path=str(documents.parent), output_path=str(tmp_path / "out"), filters=dclm_filters()
    )
    counts = filter_documents(unwrap_versioned_value(config))
    assert (counts["kept"], counts["rejected_dclm_quality_min_words"], counts["documents_cut"]) == (1, 1, 1)
    [document, _] = read_documents(str(documents))
    [(_, decision), _] = read_attributes(str(tmp_path / "out/a.jsonl.zst"))
    left = "".join(document.text[a:b] for a, b in complement(decision.cut, len(document.text)))
    assert left == "The page is at today.\n\n" + kept.strip()


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("A HEADING IN CAPITALS", None),
        ("ÜBER ÄPFEL UND BIRNEN", None),
        ("Half LOUD quiet", "Half LOUD quiet"),
        ("2024", None),
        ("٣٤ ٥", "٣٤ ٥"),
        ("* 1,024.5K  Likes!", None),
        ("3 likes of mine", "3 likes of mine"),
        ("Word", None),
        ("", ""),
        ("  ", None),
        ("Now 2 items in cart", "Now 2"),
        ("The rest of it. Read more...", "The rest of it."),
        ("The rest of it, read more now", "The rest of it, read more now"),
        ("read more...", None),
        ("Sign-in to vote", "to vote"),
        (
            "One two three four five six seven eight items in cart",
            "One two three four five six seven eight items in cart",
        ),
    ],
)
def test_lines_of_menus_are_cut(line: str, left: str | None) -> None:
    text, reason = decided("dclm_lines@baseline", f"{PROSE}{line}\n{PROSE}", max_removed_word_ratio=None)
    assert reason == ""
    assert text == f"{PROSE}{'' if left is None else left + chr(10)}{PROSE}".strip()


def test_each_rule_for_lines_can_be_disabled() -> None:
    lines = ["LOUD LINE", "12345", "3 likes", "word", "Sign-in to vote"]
    disabled: dict[str, Any] = {
        "max_uppercase_ratio": None,
        "max_digit_ratio": None,
        "counters": False,
        "min_words_per_line": None,
        "phrases": False,
        "max_removed_word_ratio": None,
    }
    assert decided("dclm_lines@baseline", "\n".join(lines), **disabled) == ("\n".join(lines), "")
    left_by = {
        "max_uppercase_ratio": lines[1:],
        "max_digit_ratio": [*lines[:1], *lines[2:]],
        "counters": [*lines[:2], *lines[3:]],
        "min_words_per_line": [lines[0], lines[2], lines[4]],
        "phrases": [*lines[:4], "to vote"],
    }
    for rule, left in left_by.items():
        others = {name: value for name, value in disabled.items() if name != rule}
        assert decided("dclm_lines@baseline", "\n".join(lines), **others) == ("\n".join(left), "")


def test_a_page_that_loses_more_than_its_share_of_words_is_rejected() -> None:
    words = "so many words are here\n" * 4 + "AB"
    assert decided("dclm_lines@baseline", words)[1] == ""  # one of 21 words
    assert decided("dclm_lines@baseline", words + " CD")[1] == "dclm_lines_max_removed_word_ratio"
    assert decided("dclm_lines@baseline", "LOUD\nLINES")[1] == "dclm_lines_empty"
    assert decided("dclm_lines@baseline", "--- ---\n... ...")[1] == "dclm_lines_max_removed_word_ratio"


def test_addresses_are_cut_only_from_a_text_that_begins_with_letters_of_a_domain() -> None:
    page = "{} page is at https://example.org/x, and 10.0.0.1:80/y too."
    assert decided("dclm_text@baseline", page.format("The")) == ("The page is at, and too.", "")
    assert decided("dclm_text@baseline", page.format("Qqq")) == ("Qqq page is at https://example.org/x, and too.", "")
    every = decided("dclm_text@baseline", page.format("Qqq"), addresses_after_domain=False)
    assert every == ("Qqq page is at, and too.", "")
    assert decided("dclm_text@baseline", page.format("The"), addresses=False) == (page.format("The"), "")
    assert decided("dclm_text@baseline", "com.example.com")[1] == "dclm_text_empty"


def test_line_feeds_beyond_two_are_cut() -> None:
    assert decided("dclm_text@baseline", "a\n\n\n\nb\n\nc\n\n\n")[0] == "a\n\nb\n\nc\n\n"
    assert decided("dclm_text@baseline", "a\n\n\n\nb", max_line_feeds=None)[0] == "a\n\n\n\nb"
    assert decided("dclm_text@baseline", "a\n\nb", max_line_feeds=1)[0] == "a\nb"


ADDRESS = re.compile(
    r"\s{0,10}(?:(?:https?|ftp)://)?[-a-zA-Z0-9@:%._+~#=]{1,256}\.(?:"
    + "|".join(sorted(DOMAINS, key=len, reverse=True))
    + r")\b[-a-zA-Z0-9()@:%_+.~#?&/=]*"
)
"""What `host_addresses` finds, as one expression whose time grows with the square of a host name's length."""
PIECES = st.sampled_from(
    [*"abz.:/@-é рф\n\t(#", "com", ".com", ".co", ".zip", ".рф", "http://", "ftp://", "https:", "www.", "x" * 200]
)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("x" * 256 + ".com " + "y" * 257 + ".com")
@example(".com.org")
@example("a.com" + " " * 12 + "b.org/x.рф.com")
def test_addresses_are_those_of_the_plain_expression(text: str) -> None:
    assert host_addresses(text) == [match.span() for match in ADDRESS.finditer(text)]


@given(st.text(alphabet="0129.a :/\n", max_size=40))
def test_ip_addresses_need_four_numbers(text: str) -> None:
    for start, end in ip_addresses(text):
        assert len(re.findall(r"\d+", text[start:end])) >= 4


def test_domains_at_the_beginning_count_in_any_case() -> None:
    assert [begins_with_domain(text) for text in ("The", "COMMON", "in", "Qqq", " com", "")] == [True] * 3 + [False] * 3


def test_words_are_between_unicodes_borders_and_begin_with_a_letter_or_digit() -> None:
    text = "Don't stop-me: 3.14, a_b x\u0301y _z 10\u202f000 漢字 ไทย"
    assert unicode_words(text) == ["Don't", "stop", "me", "3.14", "a_b", "x\u0301y", "10\u202f000", *"漢字ไทย"]


def test_a_word_in_quotes_begins_behind_them() -> None:
    assert unicode_words("’old’, ’new’ 'a' \u0301b l’été") == ["old", "new", "a", "b", "l’été"]
    assert count_tokens("one two\u00a0three\n(four) 5ive\0six _x ²") == 5


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=60))
def test_repeated_n_grams_are_those_that_a_plain_loop_counts(words: list[str]) -> None:
    grams = NGrams(words)
    for n in range(2, 5):
        every = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        most = max(map(every.count, every), default=0)
        longest = max((len("".join(gram)) for gram in every if every.count(gram) == most), default=0)
        bound = grams.top_characters_bound(n)
        assert grams.longest_top_characters(n) == (longest * most if most > 1 else 0) <= bound
    for n in range(5, 11):
        every = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        covered = {i + j for i, gram in enumerate(every) if every.count(gram) > 1 for j in range(n)}
        bound = grams.covered_characters_bound(n)
        assert grams.covered_characters(n) == sum(len(words[i]) for i in covered) <= bound


@given(st.text(alphabet="ab \n", max_size=30), st.lists(st.booleans(), min_size=31, max_size=31))
def test_lines_are_cut_with_their_line_feeds(text: str, kept: list[bool]) -> None:
    lines = text.split("\n")
    cut = CutText(text).with_lines(kept[: len(lines)])
    assert cut.text == "\n".join(line for line, keep in zip(lines, kept, strict=False) if keep)
    again = cut.stripped()
    assert again.text == cut.text.strip()
    assert "".join(text[a:b] for a, b in complement(again.cut, len(text))) == again.text


@pytest.mark.parametrize(
    "text",
    [
        "The " + "x" * 500_000 + ".com",
        "The " + "a.com" * 100_000,
        "The" + " " * 500_000,
        "The " + "1.2.3." * 80_000,
        "The\n" * 120_000,
        "3" + "," * 500_000 + " likes",
        "The " + "." * 500_000,
        "word " * 100_000,
    ],
    ids=["host", "hosts", "blanks", "numbers", "lines", "counter", "dots", "one word"],
)
def test_hostile_pages_take_bounded_time(text: str) -> None:
    filters = [
        (filter_of_thresholds(spec.thresholds), spec.thresholds) for spec in unwrap_versioned_value(dclm_filters())
    ]
    began = time.process_time()
    for decide, thresholds in filters:
        decide(TextStatistics(text, splitter_named("fast")), thresholds)
    filter_text(TextStatistics(text, splitter_named("fast")), filters)
    assert time.process_time() - began < 60
