"""The links of a page."""

from __future__ import annotations

import pydoc
import subprocess
import textwrap
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from marin_assets.stages.download.links.anchors import links_of

HARMFUL = {
    "tags that do not end": "<a" * 200_000,
    "quotes": "<a '\"" * 100_001,
    "comments": "<!--" * 200_000,
    "scripts": "<script>" * 100_000,
    "attributes": f"<a {' '.join(f'a{number}=1' for number in range(100_000))}>x</a>",
    "depth": "<div>" * 100_000,
    "links": "<a href=x>" * 50_000,
    "a long address": "<a href='" + "x" * 1_000_000,
    "brackets": "<" * 1_000_000,
}


def hrefs(page: str) -> list[str]:
    return [anchor.href for anchor in links_of(page).anchors]


def test_a_link_has_its_text_and_the_text_around_it() -> None:
    page = "<p>Owls &amp; mice: <A HREF='/owls' Rel='Foo NoFollow'>the  <b>o</b>wl</A> hunts</p><p>at night</p>"
    [anchor] = links_of(page).anchors
    assert (anchor.href, anchor.text) == ("/owls", "the owl")
    assert anchor.context == "Owls & mice: the owl hunts at night"
    assert anchor.rel == {"foo", "nofollow"}


def test_what_is_not_shown_has_no_links() -> None:
    page = "<!-- <a href=1> --><script>'<a href=2>'</script><style><a href=3></style><title><a href=4></title>"
    assert hrefs(f"{page}<template><a href=5></template><textarea><a href=6></textarea><a name=x></a><a href=7>") == [
        "7"
    ]


def test_an_area_is_a_link_with_its_alternative_text() -> None:
    [anchor] = links_of("<map><area href=/x alt='a map'></map>").anchors
    assert (anchor.href, anchor.text) == ("/x", "a map")


def test_a_query_keeps_what_is_no_reference() -> None:
    assert hrefs('<a href="?a=1&copy=2&amp;b=3&#38;c&lt">') == ["?a=1&copy=2&b=3&c<"]


def test_a_page_can_state_a_base_and_refuse() -> None:
    links = links_of(
        "<base href='/docs/'><base href='/other/'><meta name=Robots content='noindex, NOFOLLOW'><a href=x>"
    )
    assert (links.base, links.nofollow) == ("/docs/", True)


def test_pages_of_a_program_have_the_links_that_another_parser_finds() -> None:
    class Links(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.hrefs: list[str | None] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "a" and "href" in dict(attrs):
                self.hrefs.append(dict(attrs)["href"])

    for module in (pydoc, textwrap):
        page = pydoc.html.page(module.__name__, pydoc.html.document(module))
        parser = Links()
        parser.feed(page)
        assert len(parser.hrefs) > 10
        assert hrefs(page) == parser.hrefs


@pytest.mark.long
def test_pages_of_a_manual_have_the_links_of_a_tree(tmp_path: Path) -> None:
    """530 pages of Debian's python3.11-doc, 164,265 links: those that libxml2's tree has."""
    lxml_html = pytest.importorskip("lxml.html")
    manual = subprocess.run(["apt-get", "download", "python3.11-doc"], cwd=tmp_path, capture_output=True)
    archives = list(tmp_path.glob("python3.11-doc*.deb"))
    if manual.returncode or not archives:
        pytest.skip("apt has no package python3.11-doc")
    subprocess.run(["dpkg-deb", "-x", str(archives[0]), str(tmp_path / "manual")], check=True)
    pages = sorted((tmp_path / "manual").rglob("*.html"))
    assert len(pages) > 300
    for path in pages:
        if path.is_file():
            page = path.read_text(errors="replace")
            parser = lxml_html.HTMLParser(huge_tree=True, encoding="utf-8")
            tree = lxml_html.document_fromstring(page.encode(), parser=parser)
            expected = [link.get("href").strip() for link in tree.iter("a", "area") if link.get("href") is not None]
            assert sorted(href.strip() for href in hrefs(page)) == sorted(expected), path.name


@pytest.mark.parametrize("page", HARMFUL.values(), ids=HARMFUL)
def test_a_page_that_means_harm_takes_linear_time(page: str) -> None:
    began_s = time.process_time()
    links_of(page)
    assert time.process_time() - began_s < 5
