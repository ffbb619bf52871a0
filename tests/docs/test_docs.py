"""The documentation does what it says: commands, code, links, paths."""

import re
import struct
from pathlib import Path

import pytest
from pages import FENCE, PAGES, ROOT, Checkout, blocks, do_page

LINK = re.compile(r"\]\((?!https?://|#)(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
PATH_IN_TEXT = re.compile(
    r"`(?P<path>(?:marin_assets|marin_resources|marin_sensors|tests|docs)/[\w./*-]*)(?P<rest>[^`]*)`"
)
"""In backticks, from the root of the repository; `rest` begins with the first placeholder, as in `docs/<page>.md`."""
ELSEWHERE = {ROOT / "docs/how-to/add-a-stage.md": "tests/stories/test_a_new_stage_is_one_file_and_one_test.py"}
"""Pages that another test does."""

DONE = [
    page
    for page in PAGES
    if page not in ELSEWHERE and any(b.kind in ("python", "bash", "console") for b in blocks(page))
]
STARTS_PROCESSES = ("bash", "console")
REPRESENTATIVES = {ROOT / "docs/how-to/add-a-filter.md"}
"""Of the pages whose commands start processes, most of them a Ray each, those that `make test` does. It does all pages
that only show Python."""
LONG = [page for page in PAGES if any(block.mark == "long" for block in blocks(page))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def is_long(page: Path) -> bool:
    return page not in REPRESENTATIVES and any(block.kind in STARTS_PROCESSES for block in blocks(page))


@pytest.mark.timeout(900)  # a page of many commands, beside other tests on two cores
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.long] if is_long(page) else [], id=name(page)) for page in DONE]
)
def test_the_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "outputs"))
    do_page(page, Checkout(tmp_path), with_long=False)


@pytest.mark.long
@pytest.mark.parametrize("page", LONG, ids=name)
def test_the_page_does_also_what_takes_long(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "outputs"))
    do_page(page, Checkout(tmp_path), with_long=True)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.finditer(page.read_text()):
        target = page.parent / link["target"]
        assert target.exists(), f"{name(page)} links to {link['target']!r}, which is not there"
        if link["anchor"]:
            assert link["anchor"][1:] in anchors(target), f"{name(page)}: {link['target']!r} has no {link['anchor']!r}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_page_is_about_this_repository_alone(page: Path) -> None:
    for line in page.read_text().splitlines():
        assert not re.search(r"/work\b|/tmp\b|/root\b|/home/\w|#\d{2,}\b", line), f"{name(page)}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_of_the_repository_in_the_text_exists(page: Path) -> None:
    for match in PATH_IN_TEXT.finditer(FENCE.sub("", page.read_text())):
        path = match["path"].rpartition("/")[0] if match["rest"] else match["path"]
        assert next(ROOT.glob(path), None), f"{name(page)} names {path!r}, which does not exist"


def test_every_page_is_reachable_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            links = (page.parent / link["target"] for link in LINK.finditer(page.read_text()))
            waiting += [target.resolve() for target in links if target.suffix == ".md"]
    assert reached == set(PAGES)


def test_pictures_are_small_and_shown() -> None:
    shown = {(page.parent / link["target"]).resolve() for page in PAGES for link in LINK.finditer(page.read_text())}
    for picture in (ROOT / "docs/images").iterdir():
        header = picture.read_bytes()[:24]
        width, height = struct.unpack(">II", header[16:24])
        assert picture in shown, f"{picture.name} is on no page"
        assert picture.stat().st_size < 300_000
        assert width <= 1700
        assert height <= 1000


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
