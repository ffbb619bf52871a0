"""Papers of LaTeX, their HTML by LaTeXML, and what their LaTeX says of formulas, headings, items and words.

`python latexml_papers.py CONFIG`: read an archive of ar5iv in a process of its own; the config's fields are JSON. It
prints the counts.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PAGES = Path(__file__).parent / "latexml_pages"
NAMES = ("displays", "flight", "lists")
OPTIONS = ("--format=html5", "--pmml", "--cmml", "--mathtex", "--nodefaultresources")
PACKAGES = [
    "latexml",
    "libarchive-zip-perl",
    "libclone-perl",
    "libcommon-sense-perl",
    "libencode-locale-perl",
    "libfile-which-perl",
    "libhttp-date-perl",
    "libhttp-message-perl",
    "libimage-size-perl",
    "libio-html-perl",
    "libio-string-perl",
    "libjson-xs-perl",
    "liblwp-mediatypes-perl",
    "libnet-http-perl",
    "libparse-recdescent-perl",
    "libpod-parser-perl",
    "libtext-unidecode-perl",
    "libtimedate-perl",
    "libtry-tiny-perl",
    "libtypes-serialiser-perl",
    "liburi-perl",
    "libuuid-tiny-perl",
    "libwww-perl",
    "libxml-libxml-perl",
    "libxml-libxslt-perl",
    "libxml-namespacesupport-perl",
    "libxml-sax-base-perl",
    "libxml-sax-perl",
]
"""Debian's packages of LaTeXML and the Perl modules that it loads, without an installation of TeX."""
NAMES_OF = {"le": "leq", "ge": "geq", "ne": "neq", "to": "rightarrow", "gets": "leftarrow"}
"""Commands that LaTeXML writes by another name."""
ENVIRONMENTS = "equation|align|eqnarray|gather|multline|alignat"
DISPLAY = re.compile(
    rf"\$\$(?P<dollars>.*?)\$\$|\\\[(?P<brackets>.*?)\\\]"
    rf"|\\begin\{{(?P<name>{ENVIRONMENTS})\*?\}}(?:\{{\d\}})?(?P<rows>.*?)\\end\{{(?P=name)\*?\}}",
    re.DOTALL,
)
INLINE = re.compile(r"(?<!\\)\$((?:[^$\\]|\\.)+)\$", re.DOTALL)


def page_of(name: str) -> str:
    return (PAGES / f"{name}.html").read_text()


def source_of(name: str) -> str:
    return (PAGES / f"{name}.tex").read_text()


def latexml(folder: Path) -> list[str] | None:
    """The command latexmlc: that of the path, or of Debian's packages below `folder`; None if they cannot be had."""
    if installed := shutil.which("latexmlc"):
        return [installed]
    if not all(map(shutil.which, ("perl", "apt-get", "dpkg-deb"))):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=folder, capture_output=True, timeout=240)
    if got.returncode:
        return None
    for package in sorted(folder.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    libraries = [folder / "usr/share/perl5", *folder.glob("usr/lib/*/perl5/5.*")]
    command = ["perl", *(f"-I{library}" for library in libraries), str(folder / "usr/bin/latexmlc")]
    return command if subprocess.run([*command, "--VERSION"], capture_output=True).returncode == 0 else None


def html_by(command: list[str], source: str, folder: Path, *options: str) -> str:
    """The HTML of LaTeX, by LaTeXML. Its option --noparse leaves TeX as it is, and takes no long time."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "paper.tex").write_text(source)
    words = [*command, *OPTIONS, *options, "--dest=paper.html", "paper.tex"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, env=dict(os.environ))
    assert (folder / "paper.html").exists(), done.stderr[-2000:]
    return (folder / "paper.html").read_text()


def without_date(page: str) -> str:
    return re.sub(r"Generated\s+on [^<(]*? by |Generated on .*?\(", "", page)


# the truth


def kept(source: str) -> str:
    """The part of LaTeX that is kept by default: without authors, notes, captions and bibliography."""
    source = source.partition(r"\begin{document}")[2] if r"\title" not in source else source
    source = re.sub(r"\\(?:documentclass|usepackage|newtheorem|theoremstyle).*", "", source)
    source = re.sub(r"\\begin\{thebibliography\}.*?\\end\{thebibliography\}", "", source, flags=re.DOTALL)
    for command in ("author", "date", "thanks", "footnote", "caption", "cite", "ref", "label", "includegraphics"):
        source = without_argument(source, command)
    return source


def without_argument(source: str, command: str) -> str:
    r"""LaTeX without \command{…}, whose braces may be nested."""
    parts, done = [], 0
    for match in re.finditer(rf"[~ ]?\\{command}(?:\[[^\]]*\])?\{{", source):
        if match.start() < done:
            continue
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(source[at], 0)
            at += 1
        parts.append(source[done : match.start()])
        done = at
    return "".join([*parts, source[done:]])


def formulas_of(source: str) -> list[str]:
    """The formulas of kept LaTeX in their order, each canonical, with "$$" in front of a display."""
    source = re.sub(r"\\begin\{(lstlisting|verbatim)\}.*?\\end\{\1\}|\\verb\|.*?\|", "", source, flags=re.DOTALL)
    formulas, done = [], 0
    for match in DISPLAY.finditer(source):
        formulas += map(canonical, INLINE.findall(source[done : match.start()]))
        formulas += displays_of(match)
        done = match.end()
    return [*formulas, *map(canonical, INLINE.findall(source[done:]))]


def displays_of(match: re.Match[str]) -> Iterator[str]:
    if match["name"] is None:
        yield "$$" + canonical(match["dollars"] or match["brackets"])
        return
    for part in re.split(r"\\\\\s*\\intertext\{.*?\}", match["rows"]):
        rows = divided(part, r"\\")
        if match["name"] == "equation":
            rows = [part]
        cells = [[canonical(cell) for cell in divided(row, "&")] for row in rows]
        if match["name"] == "eqnarray":
            cells = [[row[0], "".join(row[1:])] for row in cells]
        if len(cells) == 1 and len(cells[0]) <= 2:
            yield "$$" + "".join(cells[0])
        else:
            kind = "gathered" if max(map(len, cells)) == 1 else "aligned"
            yield rf"$$\begin{{{kind}}}" + r"\\".join("&".join(row) for row in cells) + rf"\end{{{kind}}}"


def divided(tex: str, mark: str) -> list[str]:
    """Rows or cells of TeX, outside of environments within it."""
    parts, depth = [""], 0
    for token in re.findall(r"\\begin\{|\\end\{|\\\\|\\.|[^\\]", tex, re.DOTALL):
        depth += (token == r"\begin{") - (token == r"\end{")
        if token == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def canonical(tex: str) -> str:
    """TeX as LaTeXML writes it: braces around the arguments of ^ and _, no blanks, one name for a command."""
    tex = re.sub(r"\\label\{.*?\}|\\nonumber|\\displaystyle", "", tex)
    tokens = re.findall(r"\\[A-Za-z]+|\\.|\S", tex)
    parts, wraps = [], False
    for token in tokens:
        name = NAMES_OF.get(token[1:]) if token[0] == "\\" else None
        token = rf"\{name}" if name else token
        parts.append(f"{{{token}}}" if wraps and token != "{" else token)
        wraps = token in ("^", "_")
    return "".join(parts)


def formulas_in(text: str) -> list[str]:
    """The formulas of Markdown in their order, canonical, with "$$" in front of a display."""
    text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    formulas = []
    for match in re.finditer(r"(?<!\\)\$\$(.+?)(?<!\\)\$\$|" + INLINE.pattern, text, re.DOTALL):
        tex = (match[1] or match[2]).replace(r"\vert ", "|").replace(r"\vert", "|").replace(r"\Vert ", r"\|")
        formulas.append(("$$" if match[1] else "") + canonical(tex.replace(r"\Vert", r"\|")))
    return formulas


def words_of(source: str) -> list[str]:
    """The words of kept LaTeX outside of formulas, in their order."""
    source = source.partition(r"\end{document}")[0]
    source = DISPLAY.sub(lambda match: " ".join(re.findall(r"\\intertext\{(.*?)\}", match[0])), source)
    source = re.sub(r"\\(?:setcounter)\{\w+\}\{\d\}|\\begin\{tabular\}\{.*?\}|\\(?:begin|end)\{\w+\*?\}", " ", source)
    source = INLINE.sub(" ", source)
    return re.findall(r"[A-Za-z]{2,}", re.sub(r"\\[A-Za-z]+", " ", source))


def headings_of(source: str) -> list[str]:
    titles = re.findall(r"\\(?:sub)*(?:section|paragraph)\*?\{((?:[^{}]|\{[^{}]*\})*)\}", source)
    return [canonical_text(title) for title in titles]


def canonical_text(text: str) -> str:
    return " ".join(re.sub(r"^(?:Appendix )?[A-Z0-9.]{1,5} ", "", text.strip("# ")).split())


# papers with formulas that are drawn


def drawn_paper(draw: random.Random) -> str:
    """A paper of formulas that nobody wrote: a tree each, in all environments."""
    parts = [r"\documentclass{article}\usepackage{amsmath,amssymb}\begin{document}\section{Drawn}"]
    for number in range(6):
        first, second, third = (term(draw, 2) for _ in range(3))
        parts += [
            f"Sentence {number} has ${first}$ in it.",
            rf"\begin{{equation}} {second} \end{{equation}}",
            rf"\begin{{align}} {first} &= {second} \\ &\leq {third} \end{{align}}",
            rf"\begin{{gather*}} {second} \\ {third} \end{{gather*}}",
            rf"\begin{{eqnarray}} {first} & = & {third} \\ & & + {second} \end{{eqnarray}}",
        ]
    return "\n".join([*parts, r"\end{document}"])


def term(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(["x", "y", r"\alpha", r"\beta", "2", r"\mathbf{v}", r"\Gamma", "n"])
    a, b = term(draw, depth - 1), term(draw, depth - 1)
    return draw.choice(
        [
            rf"\frac{{{a}}}{{{b}}}",
            rf"\sqrt{{{a}}}",
            f"{{({a})}}^{{{b}}}" if draw.random() < 0.5 else f"({a})",
            f"{a} + {b}",
            rf"{a} \times {b}",
            rf"\left( {a} \right)",
            rf"\sum_{{i=1}}^n {a}",
            rf"\|{a}\|",
            rf"\int_0^1 {a}\,dx",
            rf"\begin{{pmatrix}} {a} & {b} \\ 0 & 1 \end{{pmatrix}}",
            rf"\mathcal{{L}}({a})",
        ]
    )


# archives


def papers(count: int, seed: int = 0, size: int = 2000) -> dict[str, str]:
    """Members of an archive that cannot be compressed well."""
    draw = random.Random(seed)
    return {f"2105/2105.{n:05}.html": f"<html>{n} {draw.randbytes(size).hex()} ö</html>" for n in range(count)}


def write_archive(path: Path, members: Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]) -> Path:
    """Write a zip archive; a mapping, or pairs of which some have the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = members.items() if isinstance(members, Mapping) else members
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in rows:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def main() -> None:
    from marin_assets.stages.download.ar5iv.read_ar5iv import ReadAr5ivConfig, read_ar5iv
    from marin_assets.step.values import unwrap_versioned_value

    print(json.dumps(read_ar5iv(unwrap_versioned_value(ReadAr5ivConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
