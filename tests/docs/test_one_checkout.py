"""The tutorial and the how-to pages, one after the other in one checkout, as a reader does them."""

import re
from pathlib import Path

import pytest
from pages import ROOT, Checkout, blocks, do_page

LISTED = re.findall(r"\((tutorial\.md|how-to/[\w-]+\.md)\)", (ROOT / "docs/README.md").read_text())
READ = [ROOT / "docs" / page for page in dict.fromkeys(LISTED)]
LEFT_OUT = (
    "from marin_assets.catalog.experiments_folder import load_experiments; print(dict(load_experiments().left_out))"
)


def test_every_how_to_is_listed() -> None:
    assert set(READ) == {ROOT / "docs/tutorial.md", *(ROOT / "docs/how-to").glob("*.md")}


def test_the_experiments_of_all_pages_are_loaded_together(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    for page in READ:
        for block in blocks(page):
            if block.path is not None:
                checkout.save(block)
    done = checkout.shell(f'python -c "{LEFT_OUT}"')
    assert (done.returncode, done.stdout) == (0, "{}\n")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_each_page_does_what_it_says_after_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "outputs"))
    checkout = Checkout(tmp_path)
    for page in READ:
        do_page(page, checkout, with_long=False)
