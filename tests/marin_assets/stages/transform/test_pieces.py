"""A long page is divided between its paragraphs: code blocks and tables stay whole."""

from __future__ import annotations

from pathlib import Path

from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.stages.transform.html.pieces import pieces
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.values import unwrap_versioned_value


def fences(text: str) -> list[str]:
    """Return the lines that open or close a code block."""
    return [line for line in text.split("\n") if line.startswith("```")]


def block(lines: int) -> str:
    return "\n\n".join(f"line {i} of the code" for i in range(lines))


def test_no_document_ends_inside_a_code_block_or_a_table(tmp_path: Path) -> None:
    """Blocks of many sizes, some longer than a document, at many places."""
    paragraphs = "".join(f"<p>{'word ' * (7 * i % 60)}</p><pre>{block(3 * i % 50)}</pre>" for i in range(1, 60))
    table = "<table><tr><th>a</th><th>b</th></tr>" + "<tr><td>1</td><td>2</td></tr>" * 60 + "</table>"
    write_documents(str(tmp_path / "pages" / shard_name(0, 1)), [Document(id="p", text=paragraphs + table)])
    config = HtmlToMarkdownConfig(
        pages_path=str(tmp_path / "pages"), output_path=str(tmp_path / "documents"), max_characters=400
    )
    html_to_markdown(unwrap_versioned_value(config))
    documents = [d.text for shard in list_shards(str(tmp_path / "documents")) for d in read_documents(shard)]
    assert len(documents) > 50
    assert all(len(fences(text)) % 2 == 0 for text in documents)
    whole = "\n\n".join(documents)
    assert all(f"```\n{block(3 * i % 50)}\n```" in whole for i in range(1, 60) if 3 * i % 50)
    [with_table] = [text for text in documents if "| 1 | 2 |" in text]
    assert with_table.count("| 1 | 2 |") == 60


def test_a_code_block_longer_than_a_piece_stays_whole_between_pieces() -> None:
    code = "````\n```\n" + "x = 1\n\n" * 100 + "````"
    text = f"{'before ' * 20}\n\n{code}\n\n{'after ' * 60}"
    assert list(pieces(text, 20, 100)) == [f"{'before ' * 20}", code, f"{'after ' * 60}"]


def test_an_opening_fence_that_nothing_closes_is_text() -> None:
    text = "```\n" + "a line\n\n" * 100 + "end"
    assert max(map(len, pieces(text, 20, 100))) < 120
