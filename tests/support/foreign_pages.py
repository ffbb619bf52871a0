"""Pages as sites write them, in 18 languages, each with its main content as known text.

The content is made of spaCy's example sentences. Sites add to it menus, a banner about cookies, teasers of other pages,
comments, a newsletter and a footer. A seed draws the sentences; a page is the same in each process.
"""

from __future__ import annotations

import html
import importlib
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

LANGUAGES = ("ar", "cs", "de", "el", "en", "es", "fr", "he", "hi", "it", "ja", "ko", "pl", "ru", "sv", "tr", "uk", "zh")
PAGES_PER_LANGUAGE = 12
WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
"""A word, or a letter of a language without blanks between words."""


@dataclass(frozen=True, kw_only=True)
class ForeignPage:
    name: str
    page: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Escaped texts of one page."""

    title: str
    paragraphs: tuple[str, ...]
    items: tuple[str, ...]
    labels: tuple[str, ...]
    """Short texts of links."""
    teasers: tuple[str, ...]
    comments: tuple[str, ...]


def foreign_pages() -> list[ForeignPage]:
    """Return 216 pages: each language in each template, with drawn texts."""
    return [foreign_page(language, number) for language in LANGUAGES for number in range(PAGES_PER_LANGUAGE)]


def foreign_page(language: str, number: int) -> ForeignPage:
    draw = random.Random(f"{language} {number}")
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    order = list(dict.fromkeys(sentence.strip() for sentence in sentences))

    def paragraph(sentences: int) -> str:
        return " ".join(draw.choice(order) + f" {draw.randrange(1000, 9999)}." for _ in range(sentences))

    def label() -> str:
        return " ".join(draw.choice(order).split()[:3])[:24]

    title = draw.choice(order).rstrip(".?!。")
    paragraphs = tuple(paragraph(draw.randint(3, 6)) for _ in range(draw.randint(4, 9)))
    items = tuple(paragraph(1) for _ in range(draw.randint(3, 5)))
    parts = Parts(
        title=html.escape(title),
        paragraphs=tuple(map(html.escape, paragraphs)),
        items=tuple(map(html.escape, items)),
        labels=tuple(html.escape(label()) for _ in range(12)),
        teasers=tuple(html.escape(paragraph(1)) for _ in range(5)),
        comments=tuple(html.escape(paragraph(2)) for _ in range(3)),
    )
    template = TEMPLATES[number % len(TEMPLATES)]
    content = "\n".join([title, paragraphs[0], *items, *paragraphs[1:]])
    return ForeignPage(name=f"{language}/{template.__name__}/{number}", page=template(parts), content=content)


def menu(labels: tuple[str, ...]) -> str:
    return "<ul>" + "".join(f'<li><a href="/{n}">{label}</a></li>' for n, label in enumerate(labels)) + "</ul>"


def listed(items: tuple[str, ...]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def paragraphs_of(texts: tuple[str, ...]) -> str:
    return "".join(f"<p>{text}</p>\n" for text in texts)


def with_link(text: str) -> str:
    """Return a text whose first word is a link, if it has several."""
    first, _, rest = text.partition(" ")
    return f'<a href="#{len(first)}">{first}</a> {rest}' if len(rest) > len(first) else text


def weblog(parts: Parts) -> str:
    """A weblog by WordPress: classes with usual names."""
    cards = "".join(f'<div class="card"><h4><a href="#">{teaser}</a></h4></div>' for teaser in parts.teasers)
    comments = "".join(f'<li class="comment"><p>{comment}</p></li>' for comment in parts.comments)
    return f"""<!DOCTYPE html><html><head><title>{parts.title}</title><script>var a = "<p>x</p>";</script></head><body>
<header id="masthead" class="site-header"><nav class="main-navigation">{menu(parts.labels[:6])}</nav></header>
<div id="content"><article class="post type-post"><header><h1 class="entry-title">{parts.title}</h1>
<div class="entry-meta"><span class="date">2024-05-18</span> <a rel="author" href="/a">Admin</a></div></header>
<div class="entry-content"><p>{parts.paragraphs[0]}</p>{listed(parts.items)}{paragraphs_of(parts.paragraphs[1:])}
<div class="sharedaddy"><a href="https://twitter.com">Twitter</a> <a href="https://facebook.com">Facebook</a></div></div>
</article><div class="related-posts"><h3>{parts.labels[6]}</h3>{cards}</div>
<div id="comments" class="comments-area"><h2>{parts.labels[7]}</h2><ol class="comment-list">{comments}</ol></div></div>
<aside class="sidebar widget-area">{menu(parts.labels[7:])}</aside>
<footer class="site-footer"><p>© 2024 {parts.labels[0]}</p></footer></body></html>"""


def news(parts: Parts) -> str:
    """A newspaper: classes of a build tool, so that no name helps; a banner about cookies and teasers in the text."""
    half = len(parts.paragraphs) // 2 + 1
    teasers = "".join(f'<div class="x9"><a href="/n">{teaser}</a></div>' for teaser in parts.teasers)
    return f"""<html><head><title>{parts.title}</title></head><body><div class="q1"><div class="q2">
<p>We use cookies to improve your experience on this website. By continuing you accept our use of cookies.</p>
<button>OK</button></div>
<div class="q3">{menu(parts.labels[:8])}</div><div class="q4"><h1>{parts.title}</h1><div class="q5">2024-05-18</div>
<figure><img src="a.jpg" alt="{parts.labels[9]}"><figcaption>{parts.labels[8]} (AP Photo)</figcaption></figure>
<p>{parts.paragraphs[0]}</p>{listed(parts.items)}{paragraphs_of(parts.paragraphs[1:half])}{teasers}
{paragraphs_of(parts.paragraphs[half:])}</div>
<div class="q6"><h2>{parts.labels[9]}</h2>{teasers}<p>Sign up for our newsletter.</p></div>
<div class="q7">{menu(parts.labels[8:])}<p>© 2024 {parts.labels[1]}. All rights reserved.</p></div></div></body>
</html>"""


def manual(parts: Parts) -> str:
    """A manual by DocBook: a table of contents, notes in boxes with the name `sidebar`, links in the text."""
    half = len(parts.paragraphs) // 2
    return f"""<?xml version="1.0" encoding="UTF-8"?><html><head>
<meta name="generator" content="DocBook XSL Stylesheets V1.79"/><title>{parts.title}</title></head><body>
<div class="navheader"><a href="p">Prev</a> <a href="n">Next</a></div>
<div class="chapter"><h1 class="title">{parts.title}</h1>
<div class="toc">{menu(parts.labels[:5])}</div><p>{parts.paragraphs[0]}</p><div class="itemizedlist">
<ul>{"".join(f"<li><p>{with_link(item)}</p></li>" for item in parts.items)}</ul></div>
{paragraphs_of(parts.paragraphs[1:half])}
<div class="sidebar"><div class="titlepage"></div>{paragraphs_of(parts.paragraphs[half:])}</div></div>
<div class="navfooter">{menu(parts.labels[6:9])}</div></body></html>"""


def table_layout(parts: Parts) -> str:
    """An old page: tables arrange it, and line breaks are its paragraphs."""
    text = "<br><br>\n".join(parts.paragraphs[1:])
    return f"""<HTML><HEAD><TITLE>{parts.title}</TITLE></HEAD><BODY><TABLE><TR><TD colspan=2>
<a href=/>{parts.labels[0]}</a> | <a href=/b>{parts.labels[1]}</a> | <a href=/c>{parts.labels[2]}</a></TD></TR>
<TR><TD width=150>{menu(parts.labels[3:9])}</TD><TD><H1>{parts.title}</H1>{parts.paragraphs[0]}{listed(parts.items)}
{text}</TD></TR><TR><TD colspan=2><font size=1>© 1999 {parts.labels[4]}</font></TD></TR></TABLE></BODY></HTML>"""


TEMPLATES: tuple[Callable[[Parts], str], ...] = (weblog, news, manual, table_layout)


def shared_ngrams(content: str, text: str, size: int = 4) -> tuple[float, float]:
    """Return precision and recall of the n-grams of a text's words."""
    wanted, found = (
        Counter(zip(*(words[start:] for start in range(size)), strict=False))
        for words in (WORD.findall(content), WORD.findall(text))
    )
    shared = sum((wanted & found).values())
    return shared / max(1, found.total()), shared / max(1, wanted.total())
