"""MathML as LaTeX: equal after the way to MathML and back, and never a wrong formula without a word."""

from __future__ import annotations

import html
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from formula_trees import mathml_of, tree_of
from latexml_papers import NAMES, drawn_paper, html_by, latexml, page_of

from marin_assets.stages.transform.formulas.mathml import MathmlError, mathml_to_latex

FORMULAS = [
    r"x_0^2 + y' \le \alpha_{i,j}",
    r"\frac{a+b}{c} = \sqrt[3]{x}",
    r"\sum_{i=1}^{n} i \in \mathbb{R}",
    r"\left(\frac{a}{b}\right)^{n}",
    r"\left[\begin{matrix}1 & 2\\3 & 4\end{matrix}\right]",
    r"\begin{pmatrix}a & b\\c & d\end{pmatrix}",
    r"f(x) = \begin{cases} a & x > 0 \\ b & \text{else}\end{cases}",
    r"\binom{n}{k} \log x",
    r"\hat{x} + \overline{ab} + \vec{v} + \ddot{y}",
    r"\mathbf{F} = m\,\mathrm{d}v",
    r"\operatorname{Li}(z) \ne \infty",
    r"\lim_{x \to 0} \sin x",
    r"a \mid b",
    r"\left|x\right| - \|y\|",
    r"\int_0^\infty e^{-x}\,dx",
]
UNLIKE = {
    "mfrac of one": ("<mfrac><mi>a</mi></mfrac>", "<mfrac> has 1 children, expected 2"),
    "scripts of none": ("<mmultiscripts></mmultiscripts>", "<mmultiscripts> has no base"),
    "unknown": ("<mrow><mglyph src='x.png'/></mrow>", "<mglyph> has no LaTeX"),
    "page": ("<table><tr><td>1</td></tr></table>", "<table> has no LaTeX"),
    "notation": ("<menclose notation='longdiv'><mi>a</mi></menclose>", "notation='longdiv'> has no LaTeX"),
    "deep": ("<mrow>" * 5000 + "<mi>a</mi>", "more than 150 levels"),
}


@pytest.mark.parametrize("latex", FORMULAS)
def test_a_formula_comes_back_equal(latex: str) -> None:
    assert tree_of(mathml_to_latex(mathml_of(latex))) == tree_of(latex)


@pytest.mark.parametrize(
    ("content", "latex"),
    [
        ("<msup><mrow><mo>(</mo><mi>x</mi><mo>+</mo><mn>1</mn><mo>)</mo></mrow><mn>2</mn></msup>", "{(x+1)}^2"),
        ("<mi>f</mi><mo>&ApplyFunction;</mo><mfenced><mi>x</mi><mi>y</mi></mfenced>", r"f\left(x,y\right)"),
        ("<mn>2</mn><mo>&InvisibleTimes;</mo><mi>&pi;</mi>", r"2\pi"),
        ("<mi>𝐱</mi><mo>&#x2264;</mo><mi>ℝ</mi>", r"\mathbf{x} \le \mathbb{R}"),
        ("<mmultiscripts><mi>X</mi><mi>a</mi><mi>b</mi><mprescripts/><mi>c</mi><none/></mmultiscripts>", "{}_cX_a^b"),
        ("<munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mi>i</mi>", r"\sum_i^ni"),
        ("<mover><mi>AB</mi><mo>→</mo></mover>", r"\overrightarrow{\operatorname{AB}}"),
        ("<mtext>50 % of a_b</mtext>", r"\text{50 \% of a\_b}"),
        ("<mrow><mo>{</mo><mtable><mtr><mtd><mi>a</mi></mtd></mtr></mtable></mrow>", r"\begin{cases}a\end{cases}"),
        ("<mo stretchy=false>(</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo stretchy=false>)</mo>", r"(\frac{a}{b})"),
        ("<mo>(</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>)</mo>", r"\left(\frac{a}{b}\right)"),
        ("<mo>(</mo><mi>a</mi><mo>]</mo>", "(a]"),
        ("<mo>(</mo><mi>a</mi>", "(a"),
        ("<semantics><mi>a</mi><annotation encoding='x'>b</annotation></semantics>", "a"),
        ("<menclose notation='box'><mi>a</mi></menclose>", r"\boxed{a}"),
        ("<MI>a</MI>", "a"),
        ("", ""),
    ],
)  # fmt: skip
def test_each_element_is_its_latex(content: str, latex: str) -> None:
    assert mathml_to_latex(content) == latex


@pytest.mark.parametrize(("content", "reason"), UNLIKE.values(), ids=UNLIKE)
def test_what_has_no_latex_is_an_error_that_names_it(content: str, reason: str) -> None:
    with pytest.raises(MathmlError, match=re.escape(reason)):
        mathml_to_latex(content)


def test_the_time_is_linear() -> None:
    def seconds(content: str) -> float:
        start = time.process_time()
        mathml_to_latex(content)
        return time.process_time() - start

    for part in ("<mo>(</mo><mi>a</mi>", "<msub><mi>a</mi><mn>1</mn></msub>", "<mi mathvariant='bold'>a</mi>"):
        assert seconds(part * 20_000) < 40 * max(seconds(part * 1_000), 0.005)


def test_formulas_of_latexml_come_back_equal() -> None:
    equal, of = equal_of_latexml(map(page_of, NAMES))
    assert of >= 60
    assert equal >= 0.9 * of, "what is not equal has spaces, or rows without a table"


@pytest.mark.long
def test_formulas_of_drawn_papers_come_back_equal(tmp_path: Path) -> None:
    """LaTeXML's MathML of 2,000 formulas: the TeX that it notes beside each is the truth."""
    if (command := latexml(tmp_path / "latexml")) is None:
        pytest.skip("LaTeXML cannot be had from Debian")
    pages = (html_by(command, drawn_paper(random.Random(seed)), tmp_path / str(seed)) for seed in range(30))
    equal, of = equal_of_latexml(pages)
    print(f"{equal:,} of {of:,} formulas of LaTeXML come back equal")
    assert of >= 1_500
    assert equal >= 0.95 * of


@pytest.mark.long
def test_formulas_of_sympys_documentation_come_back_equal(tmp_path: Path) -> None:
    if not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        pytest.skip("no Debian")
    done = subprocess.run(["apt-get", "download", "-q", "python-sympy-doc"], cwd=tmp_path, capture_output=True)
    if done.returncode:
        pytest.skip("python-sympy-doc cannot be had from Debian")
    [package] = tmp_path.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    image = re.compile(r'<img\b[^>]*class="math"[^>]*alt="([^"]*)"')
    pages = [path.read_text(errors="replace") for path in tmp_path.rglob("*.html")]
    formulas = sorted({html.unescape(latex).strip() for page in pages for latex in image.findall(page)})
    equal = without = 0
    for latex in formulas:
        try:
            truth = tree_of(latex)
        except Exception:  # latex2mathml refuses it, or writes no XML
            without += 1
            continue
        equal += _is_equal(mathml_to_latex(mathml_of(latex)), truth)
    print(f"{equal:,} of {len(formulas):,} formulas of sympy come back equal; {without} without a tree")
    assert len(formulas) > 2_200
    assert equal >= 0.95 * len(formulas)


def equal_of_latexml(pages: Iterable[str]) -> tuple[int, int]:
    """How many formulas of LaTeXML's pages come back equal to the TeX beside them, and of how many."""
    equal = of = 0
    for page in pages:
        for content in re.findall(r"<math\b[^>]*>(.*?)</math>", page, re.DOTALL):
            note = re.search(r'encoding="application/x-tex"[^>]*>([^<]*)<', content)
            assert note is not None
            latex = re.sub(r"%\n\s*", "", html.unescape(note[1]))
            try:
                truth = tree_of(latex)
            except Exception:  # a row's end outside of a table
                continue
            of += 1
            equal += _is_equal(mathml_to_latex(re.sub(r"<annotation\b.*", "", content, flags=re.DOTALL)), truth)
    return equal, of


def _is_equal(latex: str, truth: object) -> bool:
    try:
        return tree_of(latex) == truth
    except Exception:  # what latex2mathml cannot read is not equal
        return False
