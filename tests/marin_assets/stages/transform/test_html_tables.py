"""A table states the same on the page and in Markdown: each cell in its row and under its header."""

from __future__ import annotations

import re
import time

import pytest

from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown


def rows(text: str) -> list[list[str]]:
    """Return the rows of a text's Markdown tables without the delimiter rows. A pipe after a backslash is text."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if set(row) != {"---"}]


def table(*lines: str, attributes: str = "") -> str:
    return f"<p>Before.</p><table {attributes}>{''.join(f'<tr>{line}</tr>' for line in lines)}</table><p>After.</p>"


def test_empty_cells_stay_so_no_lock_conflicts_that_does_not() -> None:
    page = table(
        "<th>Requested</th><th>ACCESS SHARE</th><th>ROW SHARE</th><th>EXCLUSIVE</th>",
        "<td>ACCESS SHARE</td><td></td><td>&nbsp;</td><td> </td>",
        "<td>ROW SHARE</td><td></td><td></td><td>X</td>",
        "<td>EXCLUSIVE<td><td>X<td>X",
    )
    assert resiliparse_markdown(page) == (
        "Before.\n\n"
        "| Requested | ACCESS SHARE | ROW SHARE | EXCLUSIVE |\n"
        "| --- | --- | --- | --- |\n"
        "| ACCESS SHARE |  |  |  |\n"
        "| ROW SHARE |  |  | X |\n"
        "| EXCLUSIVE |  | X | X |\n\n"
        "After."
    )


def test_cells_of_paragraphs_lists_lines_and_code_stay_in_their_row() -> None:
    page = table(
        "<th>Option</th><th>Meaning</th><th>Example</th>",
        "<td><p>a</p></td><td><p>one</p><p>two</p></td><td>x<br>y <img alt='picture'></td>",
        "<td>b</td><td><ul><li>red</li><li>green</li></ul></td><td><pre>if x:\n    pass</pre></td>",
    )
    assert rows(resiliparse_markdown(page))[1:] == [
        ["a", "one two", "x y picture"],
        ["b", "- red - green", "`if x:` `    pass`"],
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [
                "<th rowspan=2>Mode</th><th colspan=2>Holds</th>",
                "<th>read</th><th>write</th>",
                "<td>S</td><td>yes</td><td></td>",
            ],
            [["Mode", "Holds", ""], ["Mode", "read", "write"], ["S", "yes", ""]],
            id="a header over two columns stands once, one beside two rows in each",
        ),
        pytest.param(
            [
                "<th>v</th><th>1</th><th>2</th>",
                "<td>go</td><td colspan='2'>yes</td>",
                "<td>stop</td><td></td><td>no</td>",
            ],
            [["v", "1", "2"], ["go", "yes", "yes"], ["stop", "", "no"]],
            id="a value over two columns is in each",
        ),
        pytest.param(
            ["<th>a</th><th>b</th>", "<td colspan=2>Section</td>", "<td>1</td><td>2</td>"],
            [["a", "b"], ["Section", ""], ["1", "2"]],
            id="a cell as wide as the table stands once",
        ),
        pytest.param(
            ["<td>a</td><td rowspan=0>to the end</td>", "<td>b</td>", "<td>c</td>"],
            [["", ""], ["a", "to the end"], ["b", "to the end"], ["c", "to the end"]],
            id="rowspan 0 reaches the end",
        ),
        pytest.param(
            ["<th>a</th><th>b</th><th>c</th>", "<td>1</td>", "<td>1</td><td>2</td><td>3</td>"],
            [["a", "b", "c"], ["1", "", ""], ["1", "2", "3"]],
            id="a short row is filled up",
        ),
        pytest.param(
            ["<td colspan=1000>a</td><td>b</td>", "<td colspan=1000>c</td><td colspan=x>d</td>"],
            [["", ""], ["a", "b"], ["c", "d"]],
            id="a column in which no cell starts is none",
        ),
    ],
)
def test_spans_keep_columns_aligned(lines: list[str], expected: list[list[str]]) -> None:
    assert rows(resiliparse_markdown(table(*lines))) == expected


def test_a_pipe_in_a_cell_is_escaped_also_in_code_and_after_a_backslash() -> None:
    found = rows(resiliparse_markdown(table("<td>a|b</td><td><code>x || y</code></td>", "<td>c\\|d</td><td>\\</td>")))
    assert found[1:] == [["a\\|b", "`x \\|\\| y`"], ["c\\\\\\|d", "\\"]]


def test_a_table_without_headers_has_an_empty_header_so_its_first_row_is_data() -> None:
    text = resiliparse_markdown(table("<td>red</td><td>1</td>", "<td>green</td><td>2</td>"))
    assert "|  |  |\n| --- | --- |\n| red | 1 |\n| green | 2 |" in text
    text = resiliparse_markdown(table("<th>red</th><td>1</td>", "<th>green</th><td>2</td>"))
    assert "|  |  |\n| --- | --- |\n| red | 1 |\n| green | 2 |" in text


def test_a_caption_stands_above_its_table_and_text_after_an_open_row_below() -> None:
    page = "<table><caption>Prices</caption><thead><tr><td>a<td>b</thead><tbody><tr><td>1<td>2</table>text"
    assert resiliparse_markdown(page) == "Prices\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\ntext"


def test_a_table_in_a_cell_of_data_is_one_line_and_one_in_a_cell_of_layout_is_a_table() -> None:
    inner = "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"
    data = table("<th>name</th><th>values</th>", f"<td>n</td><td>{inner}</td>", "<td>m</td><td></td>")
    assert rows(resiliparse_markdown(data)) == [["name", "values"], ["n", "1, 2; 3, 4"], ["m", ""]]
    layout = resiliparse_markdown(table(f"<td>menu</td><td><p>Text.</p>{inner}<p>End.</p></td>"))
    assert "menu" in layout
    assert layout.endswith("Text.\n\n|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n\nEnd.\n\nAfter.")


LAYOUTS = {
    "one cell": table("<td><h2>Title</h2><p>One.</p><p>Two.</p></td>"),
    "one column": table("<td>One.</td>", "<td>Two.</td>"),
    "columns of space": table("<td colspan=3><b>Name</b></td>", "<td>&nbsp;</td><td> </td><td>Text<br>lines</td>"),
    "columns of links": table("<td><a>a</a><br><a>b</a></td><td><a>c</a><br><a>d</a></td>"),
    "roles": table("<td>a</td><td>b</td>", "<td>c</td><td>d</td>", attributes="role=presentation"),
    "a page": table("<td>menu</td><td><h1>T</h1>" + "<p>Long text of the page.</p>" * 9 + "</td>"),
    "empty": table("<td></td><td></td>"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_table_stays_text(name: str) -> None:
    text = resiliparse_markdown(LAYOUTS[name])
    assert not rows(text)
    assert text.startswith("Before.")
    assert text.endswith("After.")
    assert not re.search("[\ufdd0-\ufddf]|\n\n\n|<", text)
    assert text.count("Long text of the page.\n\n") == (9 if name == "a page" else 0)


def test_a_long_cell_among_others_is_data_and_one_that_is_most_of_the_table_is_not() -> None:
    def page(others: int) -> str:
        long = f"<td>first</td><td></td><td>{'long ' * 1200}</td>"
        return table(
            "<th>a</th><th>b</th><th>c</th>", long, *["<td>x</td><td></td><td>" + "y " * 500 + "</td>"] * others
        )

    assert [row[:2] for row in rows(resiliparse_markdown(page(9)))][:3] == [["a", "b"], ["first", ""], ["x", ""]]
    assert not rows(resiliparse_markdown(page(2)))


def test_tags_in_comments_scripts_and_attributes_are_no_cells() -> None:
    page = table(
        "<th>a</th><!-- <table><tr><td>no --><th title='x>y'>b</th>",
        "<td>1<script>'</td><td>'</script></td><td width=50%\">2</td>",
    )
    assert rows(resiliparse_markdown(page)) == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize(
    "page",
    [
        "<table>" + "<tr><td>x</td></tr>" * 3000 + "<tr>" + "<td>y" * 3000 + "</table>",
        "<table>" + "<tr><td rowspan=65534 colspan=1000>x<td>y" * 500 + "</table>",
        "<table><tr><td rowspan=65534>" + "long " * 100 + "<td>a" + "<tr><td>b" * 4000 + "</table>",
        "<table><tr><td>x<td>" * 4000,
        "<table><tr><th>x<th>" * 4000,
        "<!--" * 100_000 + '<td a="' * 100_000 + "<math><mi>" * 10_000 + "<pre>x" * 10_000 + "<code>" * 10_000,
        "<table>&#xFDD6;c1,1,d,999999999,9&#xFDD7;&#xFDD8;7&#xFDD9;&#xFDD6;e1&#xFDD7;<tr><td>a<td>b<tr><td>c</table>",
    ],
    ids=["wide and long", "spans", "long rowspan", "nested", "nested headers", "unclosed", "forged marks"],
)
@pytest.mark.timeout(20)
def test_hostile_tables_take_little_time_and_space(page: str) -> None:
    began = time.process_time()
    text = resiliparse_markdown(page)
    assert time.process_time() - began < 5
    assert len(text) < 20 * len(page) + 100_000
    assert not re.search("[\ufdd0-\ufddf]", text)
