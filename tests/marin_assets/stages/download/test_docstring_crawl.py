"""A crawl of docstrings has prose, code and formulas in pages as the web has them, of the packages' versions alone."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_documents, write_documents
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.download.docstring_crawl import (
    DocstringCrawlConfig,
    DocstringCrawlError,
    article_of,
    installed,
    page_of,
    reference_of,
    write_docstring_crawl,
)
from marin_assets.stages.transform.formulas.fields import Formulas
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.values import unwrap_versioned_value

PROSE = "A paragraph of many words that explains what the whole of this function is made for in its module."
DOCSTRING = f"""{PROSE} {PROSE}

Parameters
----------
x : array
    The values at which :math:`\\sin x` is computed, as ``float``.

Notes
-----
{PROSE}

.. math::

    \\int_0^1 x \\, dx

>>> one(1)
1
"""


def written(output: Path, **fields: Any) -> dict[str, int | float]:
    fields = {"packages": installed("dagster"), "max_modules": 60, "output_path": str(output), **fields}
    return write_docstring_crawl(unwrap_versioned_value(DocstringCrawlConfig(**fields)))


def pages_of(crawl: Path, output: Path) -> list[Document]:
    read_warc(unwrap_versioned_value(ReadWarcConfig(input_path=str(crawl), output_path=str(output))))
    return [page for shard in list_shards(str(output)) for page in read_documents(shard)]


def test_each_page_is_read_from_the_crawl_and_those_that_are_gone_are_not(tmp_path: Path) -> None:
    counts = written(tmp_path / "crawl")
    pages = pages_of(tmp_path / "crawl", tmp_path / "pages")
    assert counts["pages"] == counts["references"] + counts["articles"] > 20
    assert len(pages) == counts["pages"] + counts["mirrored"]
    assert counts["articles"] > 5
    assert counts["mirrored"] > 0
    addresses = [str(page.metadata["url"]) for page in pages]
    assert sum("//mirror." in address for address in addresses) == counts["mirrored"]
    assert sum("//articles." in address for address in addresses) == counts["articles"]


def test_the_same_versions_make_the_same_bytes(tmp_path: Path) -> None:
    written(tmp_path / "a")
    written(tmp_path / "b")
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).glob("*.warc.gz")} for name in "ab"]
    assert files[0] == files[1]
    assert len(files[0]) == 2


def test_the_main_content_has_prose_code_and_formulas_without_the_menu_and_the_notice(tmp_path: Path) -> None:
    reference, article = reference_of([("one", DOCSTRING)]), article_of([("one", f"{PROSE}\n\n" * 9)])
    assert reference is not None
    assert article is not None
    assert article.count("<p>") == 9
    write_documents(
        str(tmp_path / "pages" / "00000-of-00001.jsonl.zst"),
        [Document(id="a", text=page_of("module", reference + article), source="test")],
    )
    html_to_markdown(
        unwrap_versioned_value(
            HtmlToMarkdownConfig(
                pages_path=str(tmp_path / "pages"),
                output_path=str(tmp_path / "documents"),
                main_content=MainContent(),
                formulas=Formulas(),
            )
        )
    )
    [document] = [d for shard in list_shards(str(tmp_path / "documents")) for d in read_documents(shard)]
    assert "$\\sin x$" in document.text
    assert "$$\\int_0^1 x \\, dx$$" in document.text
    assert "```\n>>> one(1)\n1\n```" in document.text
    assert "### Parameters" in document.text
    assert "`float`" in document.text
    assert "cookies" not in document.text
    assert "Modules" not in document.text


def test_another_version_than_the_installed_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocstringCrawlError, match=r"requests docstrings of dagster 0\.1, but .* is installed"):
        written(tmp_path, packages={"dagster": "0.1"})


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(DocstringCrawlError, match=r"'no-such-package' is not installed"):
        installed("dagster", "no-such-package")


@pytest.mark.parametrize(
    ("field", "value", "sentence"), [("packages", {}, "packages is empty"), ("shards", 0, "shards is 0")]
)
def test_a_wrong_field_is_one_sentence(tmp_path: Path, field: str, value: object, sentence: str) -> None:
    with pytest.raises(DocstringCrawlError, match=sentence):
        written(tmp_path, **{field: value})


def test_the_version_of_a_package_is_that_of_its_metadata() -> None:
    assert installed("dagster") == {"dagster": importlib.metadata.version("dagster")}


def test_short_docstrings_make_no_page() -> None:
    assert reference_of([("one", "Return one.")]) is None
    assert article_of([("one", PROSE)]) is None


def test_a_complete_file_is_not_written_again(tmp_path: Path) -> None:
    written(tmp_path / "crawl")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "crawl").glob("*.warc.gz")}
    written(tmp_path / "crawl")
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "crawl").glob("*.warc.gz")}
