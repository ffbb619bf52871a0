"""Code, lists and formulas of a page are the same in Markdown: verbatim, with their numbers, once."""

from __future__ import annotations

import pytest

from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown

CODE = "def f(x):\n    return x < 1\n\n\n\n\tpass  \n"


def test_code_is_verbatim_with_its_blank_lines() -> None:
    page = f"<p>Code:</p><pre><code>{CODE.replace('<', '&lt;')}</code></pre><p>End</p>"
    assert resiliparse_markdown(page) == f"Code:\n\n```\n{CODE}```\n\nEnd"


def test_lines_of_code_that_elements_divide_stay_lines() -> None:
    page = "<pre>a<br>b\n<div>c</div><div>d</div><span>e <b>f</b></span>\n<div>g</div>\nh</pre>"
    assert resiliparse_markdown(page) == "```\na\nb\nc\nd\ne f\ng\nh\n```"


def test_an_empty_pre_does_not_turn_text_into_code() -> None:
    assert resiliparse_markdown("<p>one</p><pre></pre><p>two</p><pre>x</pre>") == "one\n\ntwo\n\n```\nx\n```"


def test_a_fence_is_longer_than_the_backticks_inside() -> None:
    assert resiliparse_markdown("<pre>```\n````x</pre>") == "`````\n```\n````x\n`````"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("Use <CODE class=x>os.walk</CODE>, press <kbd>q</kbd>: <samp>ok</samp>", "Use `os.walk`, press `q`: `ok`"),
        ("the<tt> x </tt>of <code></code>y", "the `x` of y"),
        ("<code>a`b</code> and <code>`c`</code>", "`` a`b `` and `` `c` ``"),
        ("<code>io.</code><code>open</code>(<code>List&lt;int&gt;</code>)", "`io.open`(`List<int>`)"),
        ("<code>a = <em><code>b</code></em></code>, <code> c</code> d", "`a = b`, `c` d"),
        ("<code>one<br>two</code>", "one\ntwo"),
        ("<h2>The <code>os</code> module</h2>", "## The `os` module"),
        ("<ol><li><code>x</code></li></ol>", "  1. `x`"),
        ("<pre>a <code>b</code> c<sup>2</sup></pre>", "```\na b c2\n```"),
    ],
)
def test_inline_code_is_in_backticks(page: str, expected: str) -> None:
    assert resiliparse_markdown(page) == expected


def test_numbers_of_items_go_on_over_code_and_tables() -> None:
    table = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    inner = "<ul><li>red<pre>y</pre></li><li>green</li></ul>"
    page = f"<ol><li>one<pre>x</pre></li><li>two{inner}</li><li>{table}</li><li>four"
    text = resiliparse_markdown(page)
    lines = [line.strip() for line in text.split("\n") if line.strip() and line.strip()[0] in "-1234"]
    assert lines == ["1. one", "2. two", "- red", "- green", "3.", "4. four"]
    assert "\n    - red" in text


def test_lists_start_at_their_start_and_items_have_their_value() -> None:
    page = "<ol start=5><li>five</li><li value='9'><p>nine</p><ol><li>a</ol></li><li>ten</li></ol>"
    page += "<ol start=-1><li>m<li>z</ol>"
    lines = [line.strip() for line in resiliparse_markdown(page).split("\n") if line.strip()]
    assert lines == ["5. five", "9. nine", "1. a", "10. ten", "-1. m", "0. z"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("2<sup>10</sup> bytes of H<sub>2</sub>O", "2^10 bytes of H_2O"),
        ("x<sup>n+1</sup> x<sub>i</sub><sup>-1</sup> e<sup>x<sup>2</sup></sup>", "x^(n+1) x_i^-1 e^(x^2)"),
        ("the 1<sup>st</sup> page<sup>[3]</sup> of ABC<sup>TM</sup>", "the 1st page[3] of ABCTM"),
        ("the 2<sup>nd</sup> derivative f<sup>(2)</sup>, x<sup>start</sup>", "the 2nd derivative f^(2), x^start"),
        ("<code>2<sup>n</sup></code>", "`2^n`"),
        ("<sup>Lexer</sup><br><sub>small</sub>", "Lexer\nsmall"),
    ],
)
def test_superscripts_and_subscripts_are_legible(page: str, expected: str) -> None:
    assert resiliparse_markdown(f"<p>{page}</p>") == expected


FRACTION = "<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><msup><mi>b</mi><mn>2</mn></msup></mfrac>"
TEX = r'<annotation encoding="application/x-tex">\frac{a+1}{b^2}</annotation>'
ANNOTATED = f"<math><semantics>{FRACTION}{TEX}</semantics></math>"
KATEX = f'<span class="katex"><span>{ANNOTATED}</span><span class="katex-html">a+1b2</span></span>'
MEDIAWIKI = (
    r"<span><math><semantics><mi>E</mi><annotation encoding='application/x-tex'>{\displaystyle E&lt;1}</annotation>"
    r"</semantics></math></span><img class='mwe-math-fallback-image-inline' alt='{\displaystyle E}'>"
)
ROOT = "<math><msqrt><mi>x</mi></msqrt><mo>=</mo><msubsup><mi>y</mi><mi>i</mi><mn>2</mn></msubsup></math>"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (ANNOTATED, r"Let $\frac{a+1}{b^2}$ be."),
        (f"<math>{FRACTION}</math>", "Let (a+1)/(b^2) be."),
        ("<math display=block alttext='\\sum x'><mi>x</mi></math>", r"Let $$\sum x$$ be."),
        (KATEX, r"Let $\frac{a+1}{b^2}$ be."),
        (MEDIAWIKI, "Let $E<1$ be."),
        (ROOT, "Let sqrt(x)=y_i^2 be."),
    ],
    ids=["annotated", "plain", "alternative text", "KaTeX", "MediaWiki", "roots and scripts"],
)
def test_a_formula_appears_once(page: str, expected: str) -> None:
    assert resiliparse_markdown(f"<p>Let {page} be.</p>") == expected
