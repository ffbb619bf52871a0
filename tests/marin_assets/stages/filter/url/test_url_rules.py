"""The rules of the family `url`, by examples and by a plain program of each rule."""

import json
import re
import time
from importlib.resources import files
from typing import Any
from urllib.parse import urlparse

import pytest
import tldextract
from hypothesis import given
from hypothesis import strategies as st
from small_url_lists import DATATROVE, DCLM, Filters

from marin_assets.documents import Document
from marin_assets.stages.filter.filter_documents import decision_rule_of
from marin_assets.stages.filter.url.errors import UrlFilterError

DISABLED: dict[str, Any] = {
    "domain": False,
    "subdomain": None,
    "url": False,
    "hard_words": False,
    "soft_words": None,
    "subwords": False,
}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://bad.com/", "url_domain"),
        ("https://a.b.bad.com:8080/x?y#z", "url_domain"),
        ("http://user:word@bad.com/", "url_domain"),
        ("bad.com", "url_domain"),
        ("http://www.worse.co.uk", "url_domain"),
        ("http://notbad.com/", ""),
        ("http://bad.com.org/", ""),
        ("http://BAD.com/", ""),
        ("http://blog.host.org/", "url_subdomain"),
        ("http://other.host.org/", ""),
        ("http://x.blog.host.org/", ""),
        ("http://me.github.io/", "url_domain"),
        ("http://1.2.3.4/", ""),
        ("http://nice.com/", ""),
        ("fine.org/exact", "url_url"),
        ("http://fine.org/exact", ""),
        ("http://fine.org/bad page", "url_url"),
        ("http://x.org/slime-recipes", "url_hard_words"),
        ("http://x.org/?q=tarpit", "url_hard_words"),
        ("http://x.org/?q=tar-pit", ""),
        ("http://x.org/SLIME", ""),
        ("http://x.org/slimes", ""),
        ("http://x.org/mud", ""),
        ("http://dirt.org/dust", "url_soft_words"),
        ("http://dirt.org/dirt", ""),
        ("http://x.org/go-o-d", "url_subwords"),
        ("http://x.org/GOO/", "url_subwords"),
    ],
)
def test_datatroves_rules(filters: Filters, url: str, reason: str) -> None:
    assert filters.reason(url) == reason


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://bad.com/", "url_domain"),
        ("http://wwwBAD.com/", "url_domain"),
        ("http://www.bad.com/", ""),  # without "www" it is ".bad.com"
        ("http://www.worse.co.uk/", "url_domain"),
        ("http://bad.com:80/", ""),
        ("http://a.bad.com/", ""),
        ("http://x.org/Go-O.d", "url_subwords"),
        ("http://x.org/go_od", ""),
        ("http://x.org/\U0001f595", "url_subwords"),
        ("http://x.org/SLIME", "url_hard_words"),
        ("http://x.org/slime_a", ""),
        ("http://x.org/\u017flime", "url_hard_words"),
        ("http://x.org/dust/grime", "url_soft_words"),
        ("http://x.org/dust/Dust", ""),
        ("http://x.org/s&m/dust", "url_soft_words"),
        ("http://x.org/dust&ash", ""),
        ("http://[", ""),
        ("http://[/slime", "url_hard_words"),
    ],
)
def test_rules_of_dclm(filters: Filters, url: str, reason: str) -> None:
    assert filters.reason(url, "url@dclm") == reason


def test_a_number_of_soft_words_at_the_threshold_rejects_and_below_it_keeps(filters: Filters) -> None:
    for name in ("url@refinedweb", "url@dclm"):
        decision = filters.decision({"url": "http://dirt.org/dust/grime"}, name, soft_words=3)
        assert (decision.reason, decision.value) == ("url_soft_words", 3)
        assert filters.reason("http://dirt.org/dust", name, soft_words=3) == ""
        assert filters.reason("http://dirt.org/", name, soft_words=1) == "url_soft_words"


def test_each_rule_can_be_disabled(filters: Filters) -> None:
    for name, url, rule in [
        ("url@refinedweb", "http://a.bad.com/", "domain"),
        ("url@refinedweb", "http://blog.host.org/", "subdomain"),
        ("url@refinedweb", "fine.org/exact", "url"),
        ("url@refinedweb", "http://x.org/slime", "hard_words"),
        ("url@refinedweb", "http://dirt.org/dust", "soft_words"),
        ("url@refinedweb", "http://x.org/goo", "subwords"),
        ("url@dclm", "http://bad.com/", "domain"),
        ("url@dclm", "http://x.org/slime", "hard_words"),
        ("url@dclm", "http://dirt.org/dust", "soft_words"),
        ("url@dclm", "http://x.org/goo", "subwords"),
    ]:
        assert filters.reason(url, name) == f"url_{rule}"
        assert filters.reason(url, name, **{rule: None}) == ""
        alone = {**DISABLED, rule: 2 if rule == "soft_words" else True}
        assert filters.reason(url, name, **alone) == f"url_{rule}"
        assert filters.reason(url, name, **DISABLED) == ""


PIECES = [
    "http://",
    "https://",
    "//",
    "www.",
    "bad.com",
    "worse.co.uk",
    "blog.host.org",
    "a.",
    "x.org",
    "/",
    "?q=",
    "#",
]
PIECES += ["slime", "Slime", "dirt", "dust", "grime", "goo", "G-oo", "s&m", "&ash", "-", "_", ".", ":80", "@", "[", "]"]
PIECES += [
    "\u017f",
    "\u0131",
    "\u212a",
    "\u3002",
    "\x00",
    "\ud800",
    "\U0001f595",
    "xn--",
    "%20",
    " ",
    "\n",
    "",
    "tarpit",
]
URLS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join).filter(bool)


@given(URLS)
def test_verdicts_are_those_of_a_plain_program(filters: Filters, url: str) -> None:
    assert filters.reason(url).removeprefix("url_") == plainly_as_datatrove(url)
    assert filters.reason(url, "url@dclm").removeprefix("url_") == plainly_as_dclm(url)


EXTRACT = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def plainly_as_datatrove(url: str) -> str:
    lists = {
        name: [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        for name, text in DATATROVE.items()
    }
    letters = {name: {re.sub("[^a-zA-Z0-9]", "", entry).lower() for entry in lists[name]} for name in lists}
    host = EXTRACT(url)
    words = re.split("[^a-zA-Z0-9]+", url)
    if host.top_domain_under_public_suffix in lists["domains"]:
        return "domain"
    if host.fqdn in lists["domains"]:
        return "subdomain"
    if url in lists["urls"]:
        return "url"
    if any(word in letters["banned_words.txt"] for word in words):
        return "hard_words"
    if sum(word in words for word in letters["soft_banned_words.txt"]) >= 2:
        return "soft_words"
    joined = re.sub("[^a-zA-Z0-9]", "", url).lower()
    return "subwords" if any(word in joined for word in letters["banned_subwords.txt"]) else ""


def plainly_as_dclm(url: str) -> str:
    domains, strict, hard, soft = ([line.lower() for line in text.splitlines()] for text in DCLM.values())
    try:
        host = urlparse(url).netloc.lower().replace("www", "")
    except ValueError:
        host = ""
    if host in domains:
        return "domain"
    if any(re.search(re.escape(word), re.sub("[-.]", "", url.lower()), re.IGNORECASE) for word in strict):
        return "subwords"
    if any(re.search(rf"\b{re.escape(word)}\b", url.lower(), re.IGNORECASE) for word in hard):
        return "hard_words"
    longest_first = sorted(soft, key=len, reverse=True)
    occurring = re.findall(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", url.lower(), re.IGNORECASE)
    return "soft_words" if len(set(occurring)) >= 2 else ""


@pytest.mark.parametrize(
    "url",
    [
        "http://" + "a." * 500_000 + "com/",
        "http://xn--" + "a" * 1_000_000 + "-zca.com/",
        "http://x.org/" + "dust-" * 200_000,
        "http://x.org/" + "\u00e9-" * 500_000,
        "http://[" + ":" * 1_000_000 + "]/",
        "@" * 1_000_000,
        "http://a\x00b.com/\x00",
        "http://\ud800.com/\udfff",
        "http://[",
        "no scheme",
        " ",
        "\n",
    ],
    ids=["labels", "punycode", "words", "accents", "colons", "at", "NUL", "surrogate", "bracket", "none", " ", "feed"],
)
def test_a_hostile_address_is_decided_in_bounded_time(filters: Filters, url: str) -> None:
    began = time.process_time()
    for name in ("url@refinedweb", "url@dclm"):
        assert filters.reason(url, name) == ""
    assert time.process_time() - began < 10


def test_the_address_is_under_the_key_of_the_thresholds(filters: Filters) -> None:
    url = "http://bad.com/"
    assert filters.decision({"WARC-Target-URI": url}, key="WARC-Target-URI").reason == "url_domain"
    assert filters.decision({"metadata": {"WARC-Target-URI": url}}, key="metadata.WARC-Target-URI").reason == (
        "url_domain"
    )
    assert filters.decision({"a.b": url, "a": {"b": "http://x.org"}}, key="a.b").reason == "url_domain"
    assert filters.decision({"a": {"b": {"c": url}}}, key="a.b.c").reason == "url_domain"


@pytest.mark.parametrize("metadata", [{}, {"url": None}, {"url": ""}, {"link": "http://bad.com/"}])
def test_a_document_without_an_address_is_an_error_or_kept_or_rejected(
    filters: Filters, metadata: dict[str, Any]
) -> None:
    expected = "The document 'doc-7' has no address in metadata 'url', expected .* missing=\"keep\""
    with pytest.raises(UrlFilterError, match=expected):
        filters.decision(metadata)
    assert filters.decision(metadata, missing="keep").keep
    assert filters.decision(metadata, missing="reject").reason == "url_missing"


def test_an_address_that_is_no_text_is_an_error_always(filters: Filters) -> None:
    for missing in ("error", "keep", "reject"):
        with pytest.raises(UrlFilterError, match=r"'doc-7' has \['http://bad.com/'\] in metadata 'url'"):
            filters.decision({"url": ["http://bad.com/"]}, missing=missing)
    with pytest.raises(UrlFilterError, match=r"no address in metadata 'a\.b'"):
        filters.decision({"a": "http://bad.com/"}, key="a.b")


def test_a_text_is_not_split_into_words_for_its_address(filters: Filters, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unused(str):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"the text is used: {name}")

    decide = decision_rule_of(filters.config())
    assert decide(Document(id="0", text=Unused("Some words."), metadata={"url": "http://bad.com/"})).reason


def test_sets_name_their_source() -> None:
    text = files("marin_assets.stages.filter").joinpath("thresholds", "url.json").read_text(encoding="utf-8")
    assert {name: "arXiv:2" in entry["source"] for name, entry in json.loads(text).items()} == {
        "refinedweb": True,
        "dclm": True,
    }
