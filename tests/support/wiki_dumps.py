"""Small HTML dumps of a wiki, in the form of Wikimedia Enterprise: lines of JSON in a tar archive.

`python wiki_dumps.py CONFIG`: read dumps in a process of its own; the config's fields are JSON. It prints the counts.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Iterable, Mapping
from typing import Any

LICENSE = {"name": "Creative Commons Attribution-ShareAlike License 4.0", "identifier": "CC-BY-SA-4.0"}


def html_of(body: str, head: str = "") -> str:
    """A page as Parsoid writes it."""
    return (
        '<!DOCTYPE html>\n<html prefix="mw: http://mediawiki.org/rdf/" about="https://en.wikipedia.org/">'
        f'<head><meta charset="utf-8"/>{head}<title>title</title></head><body lang="en" '
        f'class="mw-content-ltr mw-body-content parsoid-body mediawiki mw-parser-output" dir="ltr">{body}</body></html>'
    )


def article(number: int, *, version: int = 1, body: str | None = None, **fields: Any) -> dict[str, Any]:
    """A line; `fields` replace its own."""
    body = f"<p>Article {number} in version {version} is about owls.</p>" if body is None else body
    return {
        "name": f"Article {number}",
        "identifier": number,
        "url": f"https://en.wikipedia.org/wiki/Article_{number}",
        "date_modified": "2024-05-18T01:58:10Z",
        "version": {"identifier": version, "comment": "typo"},
        "namespace": {"identifier": 0, "name": "Article"},
        "in_language": {"identifier": "en", "name": "English"},
        "is_part_of": {"identifier": "enwiki"},
        "categories": [{"name": "Category:Owls", "url": "https://en.wikipedia.org/wiki/Category:Owls"}],
        "redirects": [{"name": "Owlet", "url": "https://en.wikipedia.org/wiki/Owlet"}],
        "license": [LICENSE],
        "article_body": {"html": html_of(body), "wikitext": "'''Owls'''"},
        **fields,
    }


def line_of(row: Mapping[str, Any] | bytes) -> bytes:
    return row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode()


def lines_of(rows: Iterable[Mapping[str, Any] | bytes]) -> bytes:
    return b"".join(line_of(row) + b"\n" for row in rows)


def tar_of(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def dump_of(*members: Iterable[Mapping[str, Any] | bytes]) -> bytes:
    """A dump of members enwiki_0.ndjson, enwiki_1.ndjson, …"""
    tar = tar_of({f"enwiki_{number}.ndjson": lines_of(rows) for number, rows in enumerate(members)})
    return gzip.compress(tar, mtime=0)


def main() -> None:
    from marin_assets.stages.download.wiki.read_wiki_html import ReadWikiHtmlConfig, read_wiki_html
    from marin_assets.step.values import unwrap_versioned_value

    print(json.dumps(read_wiki_html(unwrap_versioned_value(ReadWikiHtmlConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
