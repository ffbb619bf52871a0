"""Two models' losses of every token, side by side."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.evaluate.perplexity.compare_losses import CompareLossesConfig, compare_losses
from marin_assets.stages.evaluate.perplexity.dataset_formats import TextError
from marin_assets.stages.evaluate.perplexity.loss_spans import Losses, spans_of_both, tokens_of
from marin_assets.stages.evaluate.perplexity.token_table import write_tokens
from marin_assets.step.values import unwrap_versioned_value, versioned

TEXTS = {"a": "cat & <dog>", "b": "größe", "c": "hello world"}


def row(id_: str, ends: list[int], nats: list[float]) -> dict[str, Any]:
    return {"id": id_, "domain": f"of {id_}", "text": TEXTS[id_], "token_ids": ends, "ends": ends, "nats": nats}


@pytest.fixture
def outputs(tmp_path: Path) -> list[str]:
    """Of two models with tokenizers of their own. The second is better at "a", and has not read "c"."""
    first = [row("a", [3, 5, 11], [4.0, 1.0, 6.0]), row("b", [2, 3, 3, 5], [1.0, 0.5, 0.5, 1.0]), row("c", [11], [9.0])]
    second = [row("a", [4, 11], [2.0, 3.0]), row("b", [5], [3.0])]
    for name, rows in (("first", first), ("second", second)):
        write_tokens(str(tmp_path / name / "tokens/set/00000.parquet"), rows)
    return [str(tmp_path / "first"), str(tmp_path / "second")]


def compared(outputs: list[str], output: Path, **fields: Any) -> dict[str, Any]:
    config = CompareLossesConfig(first_path=outputs[0], second_path=outputs[1], output_path=str(output), **fields)
    return compare_losses(unwrap_versioned_value(config))


class Page(HTMLParser):
    """The texts of the page's columns, and the titles and classes of their tokens."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.columns: list[str] = []
        self.tokens: list[tuple[float, str]] = []
        self._in = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self._in = not dict(attrs).get("class")
            self.columns += [""] if self._in else []
        elif tag == "i" and self._in:
            found = dict(attrs)
            self.tokens.append((float(found["title"] or 0), found["class"] or ""))

    def handle_data(self, data: str) -> None:
        if self._in:
            self.columns[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in = self._in and tag != "p"


def test_both_columns_have_the_text_and_every_loss(outputs: list[str], tmp_path: Path) -> None:
    result = compared(outputs, tmp_path / "out", first=versioned("base"), second=versioned("tuned"))
    html = (tmp_path / "out/comparison.html").read_text()
    page = Page(html)
    assert page.columns == [TEXTS["a"], TEXTS["a"], TEXTS["b"], TEXTS["b"]], "the largest difference is first"
    assert [nats for nats, _ in page.tokens] == [4.0, 1.0, 6.0, 2.0, 3.0, 1.0, 1.0, 1.0, 3.0]
    marks = ["b" if " b" in kind else "w" if " w" in kind else "" for _, kind in page.tokens]
    assert marks[:5] == ["w", "", "w", "b", "b"]
    assert "<script" not in html
    assert "src=" not in html
    assert (result["texts"], result["shown"], result["only_one"]) == (2, 2, 1)
    assert result["domains"]["set: of a"]["gap"] == pytest.approx((5 - 11) / 11 / 0.6931471805599453)
    assert json.loads((tmp_path / "out/comparison.json").read_text())["texts"] == 2


def test_the_page_ends_before_it_is_too_large_and_the_numbers_are_of_all(outputs: list[str], tmp_path: Path) -> None:
    whole, cut = (
        compared(outputs, tmp_path / name, max_page_bytes=versioned(limit))
        for name, limit in (("whole", 10_000), ("cut", 1_000))
    )
    assert (whole["shown"], cut["shown"]) == (2, 1)
    assert whole["domains"] == cut["domains"]


def test_outputs_without_tokens_or_with_nothing_in_common_are_refused(outputs: list[str], tmp_path: Path) -> None:
    with pytest.raises(TextError, match="has no tokens, expected an output of measure_perplexity"):
        compared([outputs[0], str(tmp_path / "none")], tmp_path / "out")
    write_tokens(str(tmp_path / "third/tokens/other/00000.parquet"), [row("c", [11], [1.0])])
    with pytest.raises(TextError, match="have no text in common"):
        compared([outputs[0], str(tmp_path / "third")], tmp_path / "out")


def test_the_losses_of_the_pieces_add_up() -> None:
    first, second = Losses([3, 5, 11], [4.0, 1.0, 6.0]), Losses([4, 11], [2.0, 3.0])
    spans = spans_of_both(first, second)
    assert [(span.start, span.end) for span in spans] == [(0, 3), (3, 4), (4, 5), (5, 11)]
    assert sum(span.first for span in spans) == pytest.approx(11)
    assert sum(span.second for span in spans) == pytest.approx(5)


def test_a_character_of_several_tokens_is_one_with_their_sum() -> None:
    assert list(tokens_of(Losses([2, 3, 3, 5], [1.0, 0.5, 0.25, 1.0]))) == [(0, 2, 1.0), (2, 3, 0.75), (3, 5, 1.0)]
