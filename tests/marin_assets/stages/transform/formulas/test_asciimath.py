"""AsciiMath becomes LaTeX, whatever the text is, in linear time."""

from __future__ import annotations

import random
import time

import pytest

from marin_assets.stages.transform.formulas.asciimath import NAMES, AsciiMathError, asciimath_to_latex

FORMULAS = {
    "sum_(i=1)^n i^3=((n(n+1))/2)^2": (r"\sum_{i = 1}^{n} i^{3} = \left( \frac{n \left( n + 1 \right)}{2} \right)^{2}"),
    "x/y": r"\frac{x}{y}",
    "(a+b)/(c)": r"\frac{a + b}{c}",
    "a//b": "a / b",
    "sqrt x + sqrt(x+1)": r"\sqrt{x} + \sqrt{x + 1}",
    "root(3)(x)": r"\sqrt[3]{x}",
    "frac(a)(b)": r"\frac{a}{b}",
    "sin x/2": r"\frac{\sin x}{2}",
    "sin^2(x)": r"\sin^{2} \left( x \right)",
    "log_2 x": r"\log_{2} x",
    "lim_(x->oo) 1/x": r"\lim_{x \to \infty} \frac{1}{x}",
    "int_0^1 f(x)dx": r"\int_{0}^{1} f \left( x \right) dx",
    "[[a,b],[c,d]]": r"\left[ \begin{matrix} a & b \\ c & d \end{matrix} \right]",
    "{(2x,+,17y),(x,-,y):}": r"\left\{ \begin{matrix} 2 x & + & 17 y \\ x & - & y \end{matrix} \right.",
    "[(a,b),(c)]": r"\left[ \left( a , b \right) , \left( c \right) \right]",
    "[[[[a,b],[c,d]],e],[f,g]]": (
        r"\left[ \begin{matrix} \left[ \begin{matrix} a & b \\ c & d \end{matrix} \right] & e \\ f & g "
        r"\end{matrix} \right]"
    ),
    "hat(ab) vec x bar(z)": r"\hat{a b} \vec{x} \overline{z}",
    "bb(x) in RR^n": r"\mathbf{x} \in \mathbb{R}^{n}",
    "AA x EE y: x!=y": r"\forall x \exists y : x \ne y",
    'x if "a_b" > 0': r"x \text{ if } \text{a\_b} > 0",
    "text(for all )x": r"\text{for all } x",
    "alpha_1 <= 3.14": r"\alpha_{1} \le 3.14",
    "abs(x) norm(y)": r"\left| x \right| \left\| y \right\|",
    "(1,2]": r"\left( 1 , 2 \right]",
    "(:x:)": r"\left\langle x \right\rangle",
    "color(red)(x)": "x",
    "((a+b": "( ( a + b",
    "x)": "x )",
    "x^": "x^{}",
    "/": "",
    "50% & #1": r"50 \% \& \# 1",
    "": "",
}


@pytest.mark.parametrize(("text", "latex"), FORMULAS.items(), ids=FORMULAS)
def test_a_formula_is_its_latex(text: str, latex: str) -> None:
    assert asciimath_to_latex(text) == latex


def test_every_text_has_latex_with_braces_in_pairs() -> None:
    draw = random.Random(4)
    parts = [*NAMES, "_", "^", "/", ",", "x", "12", " ", '"', "~", "%", "é"]
    for _ in range(3000):
        latex = asciimath_to_latex("".join(draw.choices(parts, k=draw.randrange(12))))
        bare = latex.replace(r"\{", "").replace(r"\}", "")
        assert bare.count("{") == bare.count("}")
        assert latex.count(r"\left") - latex.count(r"\leftarrow") - latex.count(r"\leftrightarrow") == latex.count(
            r"\right"
        ) - latex.count(r"\rightarrow")


@pytest.mark.parametrize("part", ["(", "[[", "sqrt ", "hat "])
def test_a_formula_that_is_too_deep_is_an_error(part: str) -> None:
    with pytest.raises(AsciiMathError, match="More than"):
        asciimath_to_latex(part * 1000)


@pytest.mark.parametrize("part", ["a/", "x^", "(a)", "[[a,b],[c,d]]", "sin x ", '"', "a,", "alpha"])
def test_the_time_is_linear(part: str) -> None:
    began_s = time.process_time()
    asciimath_to_latex(part * (40_000 // len(part)))
    assert time.process_time() - began_s < 5
