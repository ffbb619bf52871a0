"""Our main content of pages as Markdown against Resiliparse's plain main content and Trafilatura's.

    python tests/benchmarks/main_content.py [FOLDER] [ROUNDS]

The pages are the `.html` files below FOLDER, at most 500. Without one they are 216 pages in 18 languages, each padded
with scripts and menus to the size of a page of news, 120 kB. Trafilatura runs in an environment of its own. One process
and one core each, turn by turn; medians of processor time count.

    plain main content   Resiliparse alone: no headings, tables, rules on blocks or counts
    trafilatura          `extract(fast=True)`, of which the result is text

Limits: 0.2 times the speed of plain main content, 2.5 times Trafilatura's. Exits 1 if one is missed. Takes 2 minutes.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from foreign_pages import foreign_pages
from html_markdown import pages_of, run_peer, seconds_of

from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.main_markdown import main_markdown
from marin_assets.step.values import unwrap_versioned_value

PACKAGES = ("trafilatura==2.3.1", "lxml[html_clean]")
LIMITS = {"plain main content": 0.2, "trafilatura": 2.5}
SCRIPT = "<script>" + "var a = {'b': [1, 2, 3], 'c': \"<i>\"};\n" * 2500 + "</script>"
MENU = "<ul class='menu'>" + "<li class='item'><a class='link' href='/a/b/c'>Label</a></li>\n" * 300 + "</ul>"


def main() -> int:
    pages = pages_of(Path(sys.argv[1])) if len(sys.argv) > 1 else padded_pages()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{len(pages)} pages, {sum(map(len, pages)) / 1e6:.1f} million characters")
    fields = unwrap_versioned_value(MainContent())
    seconds: dict[str, list[float]] = {name: [] for name in ("ours", *LIMITS)}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/pages.jsonl"
        Path(path).write_text("".join(json.dumps(page) + "\n" for page in pages))
        for _ in range(rounds):
            seconds["ours"].append(seconds_of(lambda page: main_markdown(page, fields, Counter()), pages))
            seconds["plain main content"].append(seconds_of(plain_main_content, pages))
            seconds["trafilatura"].append(run_peer("trafilatura", path, PACKAGES))
    ours = statistics.median(seconds["ours"])
    print(f"{'ours':18} {len(pages) / ours:8.0f} pages a second")
    missed = []
    for name, limit in LIMITS.items():
        theirs = statistics.median(seconds[name])
        ratio = theirs / ours
        print(f"{name:18} {len(pages) / theirs:8.0f} pages a second: ours is {ratio:.2f} times as fast (limit {limit})")
        if ratio < limit:
            missed.append(name)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def padded_pages() -> list[str]:
    """Return pages with as much script and navigation around their content as pages of news have."""
    return [f"<html><head>{SCRIPT}</head><body>{MENU}{page.page}" for page in foreign_pages()]


def plain_main_content(page: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(
        page, preserve_formatting=True, main_content=True, alt_texts=False, comments=False, post_meta=False
    )


if __name__ == "__main__":
    sys.exit(main())
