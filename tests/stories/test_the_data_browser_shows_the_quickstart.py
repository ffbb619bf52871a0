"""The data browser on a real prefix: the rows of every file, their counts, and the way of documents to their tokens."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any, Protocol

import pytest
from browser_server import browsing

from marin_assets.browse.stored.row_counts import ROWS, noted_rows
from marin_assets.documents.formats import is_readable
from marin_assets.documents.rows import read_rows
from marin_resources.storage.files import read_json


class Finished(Protocol):
    """The quickstart of `conftest.py`."""

    prefix: Path

    def output(self, name: str) -> Path: ...


def outputs_of(prefix: Path) -> list[Path]:
    return sorted(path.parent for path in prefix.rglob(".executor_status"))


def rows_of(path: Path) -> list[Any]:
    return [row for _, row in read_rows(str(path))]


@pytest.mark.long
def test_every_output_is_shown_with_all_its_rows(tiny_quickstart: Finished) -> None:
    shown = 0
    with browsing(str(tiny_quickstart.prefix)) as browser:
        for output in outputs_of(tiny_quickstart.prefix):
            text = str(output.relative_to(tiny_quickstart.prefix))
            answer = browser.get("output", path=text)
            assert answer.status == 200
            for link in re.findall(r'data-open href="([^"]+)"', answer.html):
                assert browser.send("GET", unescape(link)).status == 200
            for file in sorted(output.rglob("*")):
                if is_readable(file.name) and ".marin" not in file.parts:
                    total, starts = len(rows_of(file)), []
                    for start in range(0, total, 100):
                        page = browser.get("rows", path=str(file.relative_to(tiny_quickstart.prefix)), start=start)
                        starts += re.findall(r'aria-label="Open row (\d+)"', page.html)
                    assert starts == [str(number) for number in range(total)]
                    shown += 1
    assert shown > 20


def test_the_counts_of_notes_are_the_rows_of_the_files(tiny_quickstart: Finished) -> None:
    functions = set()
    for output in outputs_of(tiny_quickstart.prefix):
        for name, rows in noted_rows(str(output)).items():
            assert len(rows_of(output / name)) == rows
        functions |= {read_json(str(note))["fn"] for note in output.glob(".marin/shards/*/*.json")}
    assert set(ROWS) <= functions


def test_a_document_leads_from_its_page_to_its_tokens(tiny_quickstart: Finished) -> None:
    kept = tiny_quickstart.output("decontaminated/quickstart-tiny")
    rows = [row for file in sorted(kept.glob("*.jsonl.zst")) for row in rows_of(file)]
    with browsing(str(tiny_quickstart.prefix)) as browser:
        for row in (rows[0], rows[len(rows) // 2], rows[-1]):
            documents = tiny_quickstart.output("documents/quickstart-tiny").relative_to(tiny_quickstart.prefix)
            answer = browser.get("way", path=str(documents), id=row["id"])
            assert "raw/quickstart-tiny" in answer.text
            assert "attributes/quickstart-tiny/quality" in answer.text
            [tokens] = {unescape(link) for link in re.findall(r'data-open href="(/tokens[^"]+)"', answer.html)}
            page = browser.send("GET", tokens)
            pieces = re.findall(r'<span class="token[^"]*" title="id \d+">(.*?)</span>', page.html, re.DOTALL)
            text = "".join(map(unescape, pieces[1:])).replace("↵\n", "\n").removesuffix("<|eos|>")
            assert text.startswith(row["text"][:200])


def test_the_difference_from_the_input_of_a_consolidation_is_what_its_record_counts(tiny_quickstart: Finished) -> None:
    before, after = (tiny_quickstart.output(f"{name}/quickstart-tiny") for name in ("selected", "consolidated"))
    result = read_json(str(after / ".executor_info"))["result"]
    texts = {"path": after, "before": before}
    query = {name: str(path.relative_to(tiny_quickstart.prefix)) for name, path in texts.items()}
    with browsing(str(tiny_quickstart.prefix)) as browser:
        text = browser.get("difference", **query).text
    assert f"with another text {result['documents_cut']} " in text
    assert f"added 0 removed {result['rejected']} changed in any way {result['documents_cut']} " in text
    assert f"the same {result['kept'] - result['documents_cut']}" in text
