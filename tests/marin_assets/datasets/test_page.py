"""The page of the known data sets lists all of them, with licence and size."""

from __future__ import annotations

from catalogue_page import PAGE, with_catalogue

from marin_assets.datasets import CATALOGUE


def test_the_page_has_the_catalogue_of_now() -> None:
    page = PAGE.read_text()
    assert page == with_catalogue(page), "run `python tests/support/catalogue_page.py`"
    for name in CATALOGUE:
        assert f"| `{name}` |" in page
