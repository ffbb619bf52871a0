"""Small XML dumps of a wiki: pages, plain or in bzip2 streams, with the index of the streams.

`python wiki_xml.py CONFIG`: read dumps in a process of its own; the config's fields are JSON. It prints the counts.
"""

from __future__ import annotations

import bz2
import json
import random
import sys
from collections.abc import Sequence
from xml.sax.saxutils import escape

NAME = "enwiki-20240520-pages-articles-multistream.xml.bz2"
INDEX = "enwiki-20240520-pages-articles-multistream-index.txt.bz2"
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo><sitename>Wikipedia</sitename><dbname>enwiki</dbname><base>https://en.wikipedia.org/wiki/Main_Page</base>
    <namespaces><namespace key="6" case="first-letter">File</namespace>
      <namespace key="14" case="first-letter">Category</namespace></namespaces></siteinfo>
"""
END = "</mediawiki>\n"


def page(
    number: int,
    text: str | None = None,
    *,
    title: str | None = None,
    namespace: int = 0,
    version: int = 7,
    model: str = "wikitext",
    attributes: str = "",
    extra: str = "",
) -> str:
    text = f"'''Owl {number}''' is a bird." if text is None else text
    return (
        f"  <page>\n    <title>{escape(title or f'Owl {number}')}</title><ns>{namespace}</ns><id>{number}</id>{extra}\n"
        f"    <revision><id>{version}</id><timestamp>2024-05-18T01:58:10Z</timestamp>"
        f"<contributor><username>Ann</username><id>5</id></contributor><model>{model}</model>"
        f'<text bytes="{len(text.encode())}" xml:space="preserve"{attributes}>{escape(text)}</text></revision>\n'
        "  </page>\n"
    )


def xml_of(pages: Sequence[str]) -> str:
    return HEAD + "".join(pages) + END


def multistream(pages: Sequence[str], *, a_stream: int = 2) -> tuple[bytes, bytes, list[int]]:
    """A dump in streams of so many pages, its index, and the offsets of the streams with pages."""
    content, lines, offsets = bz2.compress(HEAD.encode()), [], []
    for first in range(0, len(pages), a_stream):
        offsets.append(len(content))
        lines += [f"{len(content)}:{first + k}:Owl: a bird" for k in range(len(pages[first : first + a_stream]))]
        content += bz2.compress("".join(pages[first : first + a_stream]).encode())
    return content + bz2.compress(END.encode()), bz2.compress("".join(f"{x}\n" for x in lines).encode()), offsets


def drawn_pages(number: int, seed: int = 3) -> list[str]:
    draw = random.Random(seed)
    return [page(n, f"Owl {n} " + draw.randbytes(draw.randrange(400)).hex() + " é & <b>") for n in range(number)]


def main() -> None:
    from marin_assets.stages.download.wiki.read_wiki_xml import ReadWikiXmlConfig, read_wiki_xml
    from marin_assets.step.values import unwrap_versioned_value

    print(json.dumps(read_wiki_xml(unwrap_versioned_value(ReadWikiXmlConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
