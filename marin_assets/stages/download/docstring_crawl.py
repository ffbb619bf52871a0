"""Write a small web crawl of the docstrings of installed packages: prose, code, tables of parameters and formulas.

In:  installed packages, by name and version. Nothing of them is imported: their modules are parsed.
Out: WARC files, "00000.warc.gz" and so on, of three kinds of pages, each with a menu, a notice and links:
     https://docs.example.org/<package>/<module>   the docstrings of one module
     https://articles.example.org/…                its paragraphs of prose alone, if it has enough
     https://mirror.example.org/…                  every tenth page at another address
     Every 25th page also has an old address, which is gone (404).

It stands for a crawl of the web where none can be downloaded: recipes are tried with it. Formulas are between `\\(` and
`\\)`, as Sphinx writes them for MathJax.
"""

from __future__ import annotations

import ast
import gzip
import html
import importlib.metadata
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path

from marin_assets.stages.download.pydoc import choose
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("warc",)

DATE = "2024-05-18T01:58:10Z"
FOUND = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
GONE = b"HTTP/1.1 404 Not Found\r\n\r\n"
MATHJAX = '<script src="https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-mml-chtml.js"></script>'
LINKS = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in ("Home", "Modules", "About"))
MENU = f"<nav><ul>{LINKS}</ul></nav>"
NOTICE = '<div class="cookie-banner">This site uses cookies. <a href="/cookies">Accept all cookies</a></div>'
LEAST_REFERENCE, LEAST_ARTICLE = 300, 800
"""Characters of a page's text; a shorter one is not written."""
MIRRORED, OLD = 10, 25
MATH_BLOCK = re.compile(r"\.\. math::[ \t]*(.*)", re.DOTALL)
UNDERLINE = re.compile(r"([^\n]+)\n[-=~^]{3,}\s*\n?(.*)\Z", re.DOTALL)
DEFINITION = re.compile(r"^\S.*(?:\n(?:[ \t].*|$))*", re.MULTILINE)
"""A line, and the indented lines below it."""
CODE, ROLE = re.compile(r"``([^`]+)``"), re.compile(r":([a-z:]+):`([^`]+)`")
LEAST_WORDS, LEAST_LETTERS = 12, 0.85


class DocstringCrawlError(MarinError, ValueError):
    """A package that is not installed in the version of the config, or an invalid number."""


@dataclass(frozen=True, kw_only=True)
class DocstringCrawlConfig:
    packages: Mapping[str, str]
    """Name -> version of each package: another version has other pages. `installed` returns it."""
    max_modules: int | None = versioned(None)
    """At most this many modules of each package, evenly spaced; None for all."""
    shards: int = versioned(2)
    output_path: str = THIS_OUTPUT_PATH

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class CrawlShard:
    """The modules of one WARC file, as (package, path in the environment)."""

    path: str
    modules: list[tuple[str, str]]
    packages: Mapping[str, str]
    inputs: tuple[StoredFile, ...] = ()
    """None: the modules are those of the installed packages of these versions."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.path,)


def installed(*packages: str) -> dict[str, str]:
    """Return name -> version of installed packages. Raises DocstringCrawlError for one that is not installed."""
    return {name: _version(name) for name in packages}


@cache
def _version(name: str) -> str:
    """Parsing the metadata of a package takes a millisecond, and recipes share their packages."""
    return _distribution(name).version


def _distribution(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise DocstringCrawlError(f"The package {name!r} is not installed, so it has no docstrings here.") from None


def write_docstring_crawl(config: DocstringCrawlConfig) -> dict[str, int | float]:
    """Write the crawl.

    Returns modules, references, articles, pages (both), mirrored, gone, bytes of HTML, and modules_failed, which are no
    Python. Raises DocstringCrawlError.
    """
    _check(config)
    _check_versions(config.packages)
    modules = [
        (package, path)
        for package in sorted(config.packages)
        for path in choose(sorted(_modules_of(package)), config.max_modules)
    ]
    shards = [
        CrawlShard(
            path=join(config.output_path, f"{i:05}.warc.gz"),
            modules=modules[i :: config.shards],
            packages=config.packages,
        )
        for i in range(config.shards)
    ]
    return map_shards(write_shard, shards, output_path=config.output_path)


def _check(config: DocstringCrawlConfig) -> None:
    if not config.packages:
        raise DocstringCrawlError('packages is empty, expected at least one. Pass versioned(installed("numpy")).')
    if config.shards < 1:
        raise DocstringCrawlError(f"shards is {config.shards!r}, expected at least 1. Pass versioned(2).")


def _check_versions(packages: Mapping[str, str]) -> None:
    for name, version in packages.items():
        if (here := _version(name)) != version:
            raise DocstringCrawlError(
                f"The config requests docstrings of {name} {version}, but {here} is installed. Install that version, "
                f"or pass versioned(installed({name!r}))."
            )


def _modules_of(package: str) -> Iterator[str]:
    for file in _distribution(package).files or ():
        if file.suffix == ".py" and not {"test", "tests", "_vendor"}.intersection(file.parts):
            yield file.as_posix()


def write_shard(shard: CrawlShard) -> dict[str, int]:
    """Write one WARC file. Returns the counts of `write_docstring_crawl`."""
    _check_versions(shard.packages)
    counts = dict.fromkeys(
        ("modules", "modules_failed", "references", "articles", "pages", "mirrored", "gone", "bytes"), 0
    )
    records = b"".join(record for package, path in shard.modules for record in _records(package, path, counts))
    write_bytes(shard.path, records)
    return counts


def _records(package: str, path: str, counts: dict[str, int]) -> Iterator[bytes]:
    counts["modules"] += 1
    try:
        source = Path(str(_distribution(package).locate_file(path))).read_text(encoding="utf-8")
        docstrings = list(docstrings_of(source))
    except (SyntaxError, UnicodeDecodeError):  # templates, and files of Python 2
        counts["modules_failed"] += 1
        return
    module = path.removesuffix(".py").replace("/", ".")
    for kind, content in (("references", reference_of(docstrings)), ("articles", article_of(docstrings))):
        if content is None:
            continue
        host = "docs" if kind == "references" else "articles"
        page = page_of(module, content).encode()
        counts[kind] += 1
        counts["pages"] += 1
        counts["bytes"] += len(page)
        yield _response(f"https://{host}.example.org/{package}/{module}", FOUND + page)
        if counts["pages"] % MIRRORED == 0:
            counts["mirrored"] += 1
            yield _response(f"https://mirror.example.org/{host}/{package}/{module}", FOUND + page)
        if counts["pages"] % OLD == 0:
            counts["gone"] += 1
            yield _response(f"https://{host}.example.org/old/{package}/{module}", GONE)


def docstrings_of(source: str) -> Iterator[tuple[str, str]]:
    """Yield (name, docstring) of a module and its classes and functions; the module's name is empty."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text and text.strip():
                yield getattr(node, "name", ""), cleandoc(text)


def reference_of(docstrings: list[tuple[str, str]]) -> str | None:
    """Return all docstrings as HTML, each under its name; None if they are short."""
    if sum(len(text) for _, text in docstrings) < LEAST_REFERENCE:
        return None
    return "".join(
        (f"<h2>{html.escape(name)}</h2>" if name else "") + "".join(map(block_html, blocks(text)))
        for name, text in docstrings
    )


def article_of(docstrings: list[tuple[str, str]]) -> str | None:
    """Return the paragraphs of prose as HTML; None if they are short."""
    prose = [block for _, text in docstrings for block in blocks(text) if is_prose(block)]
    if sum(map(len, prose)) < LEAST_ARTICLE:
        return None
    return "".join(map(block_html, prose))


def blocks(docstring: str) -> Iterator[str]:
    """Yield the parts between blank lines; a formula on display with the lines that belong to it."""
    held = ""
    for block in re.split(r"\n[ \t]*\n", docstring):
        if held:
            if block.startswith((" ", "\t")):
                held = f"{held}\n{block}"
                continue
            yield held
            held = ""
        if block.startswith(".. math::"):
            held = block
        elif block.strip():
            yield block
    if held:
        yield held


def is_prose(block: str) -> bool:
    """Whether a part is a paragraph of sentences: at least LEAST_WORDS words, nearly all of letters alone."""
    if block.startswith((" ", "\t", ">", ".", ":", "-", "*", "|", "=")) or "\n " in block or "``" in block:
        return False
    words = block.split()
    letters = sum(word.strip(".,;:()\"'?!").isalpha() for word in words)
    return len(words) >= LEAST_WORDS and words[-1][-1] in ".?!" and letters >= LEAST_LETTERS * len(words)


def block_html(block: str) -> str:
    """Return a part as a formula, a heading with its text, code, or a paragraph."""
    if math := MATH_BLOCK.match(block):
        lines = [line.strip() for line in math[1].splitlines() if not line.strip().startswith(":")]
        return f'<div class="math">\\[{html.escape(" ".join(filter(None, lines)))}\\]</div>'
    if heading := UNDERLINE.match(block):
        rest = block_html(heading[2]) if heading[2].strip() else ""
        return f"<h3>{html.escape(heading[1].strip())}</h3>{rest}"
    if block.startswith((" ", "\t", ">>>", "..")):
        return f"<pre>{html.escape(block)}</pre>"
    if "\n " in block:
        return f"<dl>{''.join(map(definition_html, DEFINITION.findall(block)))}</dl>"
    return f"<p>{inline(' '.join(block.split()))}</p>"


def definition_html(definition: str) -> str:
    """Return a term, and the indented lines below it."""
    term, _, lines = definition.partition("\n")
    return f"<dt>{inline(term)}</dt>" + (f"<dd>{inline(' '.join(lines.split()))}</dd>" if lines.strip() else "")


def inline(text: str) -> str:
    """Return a line of reStructuredText as HTML: code, formulas, and the text of references."""
    text = CODE.sub(r"<code>\1</code>", html.escape(text, quote=False))
    return ROLE.sub(lambda m: f'<span class="math">\\({m[2]}\\)</span>' if m[1] == "math" else m[2].strip("~!"), text)


def page_of(title: str, content: str) -> str:
    """Return a page with a menu before and a notice after its content."""
    mathjax = MATHJAX if "\\(" in content or "\\[" in content else ""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>{mathjax}'
    return (
        f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>'
        f"{MENU}<main><h1>{html.escape(title)}</h1>{content}</main>{NOTICE}</body></html>"
    )


def _response(url: str, block: bytes) -> bytes:
    """A record of WARC, as a member of gzip of its own."""
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>",
        "WARC-Date": DATE,
        "WARC-Target-URI": url,
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.0\r\n{lines}\r\n".encode() + block + b"\r\n\r\n", mtime=0)
