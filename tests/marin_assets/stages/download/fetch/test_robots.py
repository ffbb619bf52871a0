"""Rules of robots.txt."""

from __future__ import annotations

import time

import pytest

from marin_assets.stages.download.fetch.robots import Rules, rules_of, rules_of_status
from marin_assets.stages.download.links.addresses import Url, canonical_url

RULES = {
    "the longest rule wins": ("User-agent: *\nDisallow: /a\nAllow: /a/b", {"/a/c": False, "/a/b/c": True}),
    "wildcards and the end": ("User-agent: *\nDisallow: /*.pdf$", {"/x.pdf": False, "/x.pdf?y": True}),
    "a byte order mark": ("\ufeffUser-agent: *\nDisallow: /", {"/": False}),
    "a name with a version": ("User-agent: OwlBot/2.1 (x)\nDisallow: /\n\nUser-agent: *\nAllow: /", {"/": False}),
    "a name in another case": ("User-agent: owlbot\nDisallow: /\n\nUser-agent: *\nAllow: /", {"/": False}),
    "another name": ("User-agent: MouseBot\nDisallow: /", {"/": True}),
    "the own group and not that of all": (
        "User-agent: *\nDisallow: /\nUser-agent: OwlBot\nDisallow: /a", {"/b": True, "/a": False}
    ),
    "comments": ("User-agent: * # all\nDisallow: /a # a\n# b\nDisallow: /b", {"/a": False, "/b": False}),
    "an empty rule": ("User-agent: *\nDisallow:", {"/": True}),
    "letters beyond ASCII": ("User-agent: *\nDisallow: /ü", {"/%C3%BC": False}),
    "HTML": ("<html><body>not found</body></html>", {"/": True}),
    "no file": ("", {"/": True}),
    "CR as line ends": ("User-agent: *\rDisallow: /a", {"/a": False}),
}  # fmt: skip


def url_of(path: str) -> Url:
    url = canonical_url(f"http://a.example{path}")
    assert isinstance(url, Url)
    return url


@pytest.mark.parametrize("case", RULES)
def test_a_file_allows_what_it_should(case: str) -> None:
    text, paths = RULES[case]
    rules = rules_of(text.encode(), "OwlBot")
    assert {path: rules.allows(url_of(path), "OwlBot") for path in paths} == paths


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(404, "all_allowed"), (401, "all_allowed"), (403, "all_allowed"), (410, "all_allowed"),
     (500, "robots_unreachable"), (503, "robots_unreachable"),
     (429, "robots_unreachable"), (304, "robots_unreachable")],
)  # fmt: skip
def test_a_status_allows_all_or_nothing(status: int, outcome: str) -> None:
    rules = rules_of_status(status)
    assert isinstance(rules, Rules)
    assert (rules.outcome, rules.is_closed) == (outcome, outcome != "all_allowed")
    assert rules_of_status(200) is None


@pytest.mark.parametrize(
    ("line", "delay_s"),
    [("Crawl-delay: 7", 7.0), ("Crawl-delay: 0.5", 0.5), ("Crawl-delay: x", 0.0), ("Crawl-delay: nan", 0.0),
     ("Crawl-delay: -5", 0.0), ("Request-rate: 1/20s", 20.0), ("Request-rate: 1/0s", 0.0)],
)  # fmt: skip
def test_a_delay_is_the_longest_that_is_stated(line: str, delay_s: float) -> None:
    assert rules_of(f"User-agent: *\n{line}\nDisallow: /a".encode(), "OwlBot").delay_s == delay_s


def test_what_is_behind_500_kib_is_not_read() -> None:
    padding = b"# " + b"x" * 511_000 + b"\n"
    assert not rules_of(padding + b"User-agent: *\nDisallow: /a\n", "OwlBot").allows(url_of("/a"), "OwlBot")
    assert rules_of(padding + b"x" * 2000 + b"\nUser-agent: *\nDisallow: /a\n", "OwlBot").allows(url_of("/a"), "OwlBot")


@pytest.mark.parametrize("text", ["Disallow: /" + "*a" * 200 + "b", "Disallow: /a\n" * 20_000], ids=["stars", "lines"])
def test_a_file_that_means_harm_takes_little_time(text: str) -> None:
    began_s = time.process_time()
    rules = rules_of(f"User-agent: *\n{text}".encode(), "OwlBot")
    for _ in range(10):
        rules.allows(url_of("/" + "a" * 1500), "OwlBot")
    assert time.process_time() - began_s < 5
