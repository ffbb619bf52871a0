"""Formulas of pages: each form is TeX between dollars, and nothing else of the page changes."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from marin_assets.documents import Document, read_documents, write_documents
from marin_assets.stages.transform.formulas.fields import COUNTS, Formulas, FormulasError
from marin_assets.stages.transform.formulas.formulas import with_formulas
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.thread_content import ThreadContent
from marin_assets.stages.transform.html_to_markdown import ExtractorError, HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import unwrap_versioned_value

MATHJAX = '<script src="https://cdn.example/MathJax.js"></script>'
KATEX = (
    '<span class="katex"><span class="katex-mathml"><math><semantics><mi>x</mi>'
    '<annotation encoding="application/x-tex">x_1</annotation></semantics></math></span>'
    '<span class="katex-html" aria-hidden="true"><span>x</span><span>1</span></span></span>'
)
MATHJAX_2 = (
    '<span class="MathJax_Preview">x2</span><span class="MathJax"><nobr><span>x<span>2</span></span></nobr></span>'
    '<script type="math/tex" id="1">x^2 < 3</script>'
)
DOLLARS = '<script>MathJax = {tex: {inlineMath: [["$", "$"], ["\\\\(", "\\\\)"]]}}</script>'
MARKS = "<script>MathJax.Hub.Config({tex2jax: {inlineMath: [['@@','@@']], displayMath: [['%%', '%%']]}});</script>"
ASCIIMATH = '<script src="MathJax.js?config=TeX-MML-AM_CHTML"></script>'
FORMS = {
    "declared dollars": (DOLLARS + r"A $b_{$1$}$ of \$5", DOLLARS + r"A $b_{$1$}$ of \$5", "delimiters"),
    "declared marks": (MARKS + "@@ a &lt; b @@", MARKS + "$a &lt; b$", "delimiters"),
    "declared marks on display": (MARKS + "%%a%%", MARKS + "$$a$$", "delimiters"),
    "double dollars": (MATHJAX + "$$ a $$", "$$ a $$", "delimiters"),
    "AsciiMath": (ASCIIMATH + "`1/2 &lt; x`", ASCIIMATH + r"$\frac{1}{2} &lt; x$", "asciimath"),
    "inline": (MATHJAX + r"Let \(a &lt; b\) be", "Let $a &lt; b$ be", "delimiters"),
    "display": (MATHJAX + r"\[ x^2 \]", "$$x^2$$", "delimiters"),
    "MathJax 2": (MATHJAX_2, "$x^2 &lt; 3$", "script"),
    "MathJax 2 display": ('<script type="math/tex; mode=display">\\sum</script>', r"$$\sum$$", "script"),
    "KaTeX": (KATEX, '<span class="katex"><span class="katex-mathml">$x_1$</span></span>', "mathml_tex"),
    "MathML": ("<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>", r"$\frac{a}{b}$", "mathml"),
    "MathML on display": ('<mml:math display="block"><mml:mi>a</mml:mi></mml:math>', "$$a$$", "mathml"),
    "WordPress": (
        '<img class="latex" alt="x &lt; 1" src="/latex.php?latex=y">',
        "$x &lt; 1$",
        "image",
    ),
    "WordPress without alt": (
        '<img src="//wp.com/latex.php?latex=x%5E2+%2B+1&amp;bg=f">',
        "$x^2 + 1$",
        "image",
    ),
    "CodeCogs": (r'<img src="//latex.codecogs.com/gif.latex?\inline%20\frac{a}{b}">', r"$\frac{a}{b}$", "image"),
    "mimeTeX": ('<img src="/cgi-bin/mimetex.cgi?a_1">', "$a_1$", "image"),
    "itex": ("[itex]a_1[/itex]", "$a_1$", "forum"),
    "tex": ("[tex] b [/tex]", "$$b$$", "forum"),
}


def rewritten(page: str) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    return with_formulas(page, counts), dict(counts)


@pytest.mark.parametrize(("page", "text", "form"), FORMS.values(), ids=FORMS)
def test_each_form_is_tex_between_dollars_and_counted(page: str, text: str, form: str) -> None:
    result, counts = rewritten(f"<p>{page}</p>")
    assert result.replace(MATHJAX, "") == f"<p>{text}</p>"
    assert (counts["formulas"], counts[f"formulas_{form}"]) == (1, 1)
    assert counts.keys() <= set(COUNTS)


@pytest.mark.parametrize(
    "page",
    [
        r"<p>A regular expression: \(a\) and \[b\]</p>",
        MATHJAX + r"<pre>\(a\)</pre><code>\[b\]</code><textarea>[tex]c[/tex]</textarea>",
        MATHJAX + r"<!-- \(a\) --><style>\(a\)</style>",
        '<p>latex <img src="cat.png" alt="a cat" class="wide"></p>',
        "<p>[math] is what it says</p>",
        '<script>if (a < b) { x = "<math>" }</script> latex',
        MATHJAX + "<p>From $5 to $6, `ls` and `cd`</p>",
        DOLLARS + r"<p>A price of \$5 and one of \$6</p><pre>$a$</pre>",
        DOLLARS + "<p>From $5 to $6, and $ 7</p>",
        '<script src="MathJax.js?config=TeX-AMS-MML_HTMLorMML"></script><p>`ls` and `cd`</p>',
    ],
    ids=["no MathJax", "code", "comments", "image", "open", "script", "prices", "escaped", "declared", "TeX"],
)
def test_what_is_no_formula_stays_as_it_is(page: str) -> None:
    assert rewritten(page)[0] == page


def test_formulas_of_several_forms_stand_beside_one_another() -> None:
    page = f"<p>{''.join(form[0] for form in FORMS.values())}</p><pre>[tex]a[/tex]</pre>"
    result, counts = rewritten(page)
    assert counts["formulas"] == len(FORMS)
    assert result.replace(MATHJAX, "") == f"<p>{''.join(form[1] for form in FORMS.values())}</p><pre>[tex]a[/tex]</pre>"


def test_mathml_without_latex_is_linear_and_counted() -> None:
    result, counts = rewritten("<p><math><mglyph/><mi>a</mi></math></p>")
    assert (result, counts) == ("<p>a</p>", {"formulas_linear": 1})


@pytest.mark.parametrize(
    "part",
    [
        *("$a", "${", "`a", "[['$','$'],", "left:'$',right:'$'"),
        *("<math>", MATHJAX + r"\(", '<span class="katex-html">', "<!--katex", '<a b="katex', "[tex]", "<script>katex"),
    ],
    ids=[
        *("dollar", "brace", "backquote", "pairs", "left"),
        *("math", "delimiter", "rendered", "comment", "attribute", "mark", "script"),
    ],
)
def test_a_page_of_open_ends_takes_linear_time(part: str) -> None:
    start = time.process_time()
    rewritten(DOLLARS + ASCIIMATH + part * (600_000 // len(part)))
    assert time.process_time() - start < 5


def test_the_text_of_a_page_has_its_formulas(tmp_path: Path) -> None:
    text = "The equation of a circle is one that every pupil has seen, and that most have drawn. " * 3
    formula = "<math><mi>y</mi></math>"
    page = f"<html><body><main><h1>Circles</h1><p>{text}{MATHJAX_2}</p><p>{text}{formula}</p></main></body></html>"
    write_documents(str(tmp_path / "pages/a.jsonl.zst"), [Document(id="1", text=page, source="s", metadata={})])
    for main_content in (None, MainContent()):
        config = HtmlToMarkdownConfig(
            pages_path=str(tmp_path / "pages"),
            output_path=str(tmp_path / f"out-{main_content is None}"),
            main_content=main_content,
            formulas=Formulas(),
        )
        counts = html_to_markdown(unwrap_versioned_value(config))
        [document] = read_documents(f"{config.output_path}/a.jsonl.zst")
        assert "$x^2 < 3$" in document.text
        assert document.text.rstrip().endswith("$y$")
        assert "x2" not in document.text
        assert (counts["formulas"], counts["formulas_script"], counts["formulas_mathml"]) == (2, 1, 1)
        assert counts["formulas_rendered"] == 2


def test_the_first_rules_leave_dollars_and_asciimath_as_they_are() -> None:
    for page in (DOLLARS + "$a$", MARKS + "@@ a @@", ASCIIMATH + "`1/2`", MATHJAX + "$$ a $$"):
        counts: Counter[str] = Counter()
        assert with_formulas(page, counts, "formulas-1") == page
        assert not counts


def test_asciimath_that_is_too_deep_stays_and_is_counted() -> None:
    deep = "(" * 99
    assert rewritten(f"{ASCIIMATH}`{deep}`") == (f"{ASCIIMATH}{deep}", {"formulas_linear": 1})


def test_the_field_is_of_the_version_only_if_it_is_given() -> None:
    def version(**fields: object) -> str:
        step = Step(
            name="documents/x",
            fn=html_to_markdown,
            config=HtmlToMarkdownConfig(pages_path="/pages", **fields),  # type: ignore[arg-type]
        )
        return build_graph([step])[step].version.hash

    assert version() == version(formulas=None)
    assert version() != version(formulas=Formulas())


def test_unknown_rules_and_contents_with_formulas_of_their_own_are_refused() -> None:
    def convert(**fields: object) -> None:
        config = HtmlToMarkdownConfig(pages_path="/pages", output_path="/out", **fields)  # type: ignore[arg-type]
        html_to_markdown(unwrap_versioned_value(config))

    with pytest.raises(FormulasError, match=r"formulas\.rules is 'formulas-3', expected one of .*'formulas-2'"):
        convert(formulas=Formulas(rules="formulas-3"))
    with pytest.raises(ExtractorError, match="formulas and thread are both given, and thread has formulas of its own"):
        convert(formulas=Formulas(), thread=ThreadContent())
