"""Our content of papers in LaTeXML's HTML as Markdown against our own conversion of the whole page, and markdownify.

    python tests/benchmarks/latexml.py [FOLDER] [ROUNDS]

The pages are the `.html` files below FOLDER, at most 500. Without one they are the papers of the tests, 33 times each.
markdownify, which Marin uses with BeautifulSoup, runs in an environment of its own. One process and one core each, turn
by turn; medians of processor time count.

    whole page    `resiliparse_markdown` of a page as it is: equations are tables, and marks are doubled

Limits: 0.6 times the speed of the whole page, 8 times markdownify's. Exits 1 if one is missed. Takes a minute.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from html_markdown import pages_of, run_peer, seconds_of
from latexml_papers import NAMES, page_of

from marin_assets.documents import Document
from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown
from marin_assets.stages.transform.latexml.latexml_content import LatexmlContent
from marin_assets.stages.transform.latexml.latexml_html import latexml_page
from marin_assets.step.values import unwrap_versioned_value

PACKAGES = ("markdownify==1.2.3",)
LIMITS = {"whole page": 0.6, "markdownify": 8.0}


def main() -> int:
    pages = pages_of(Path(sys.argv[1])) if len(sys.argv) > 1 else [page_of(name) for name in NAMES] * 33
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    megabytes = sum(map(len, pages)) / 1e6
    print(f"{len(pages)} pages, {megabytes:.1f} million characters")
    seconds: dict[str, list[float]] = {name: [] for name in ("ours", *LIMITS)}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/pages.jsonl"
        Path(path).write_text("".join(json.dumps(page) + "\n" for page in pages))
        for _ in range(rounds):
            seconds["ours"].append(seconds_of(markdown, pages))
            seconds["whole page"].append(seconds_of(resiliparse_markdown, pages))
            seconds["markdownify"].append(run_peer("markdownify", path, PACKAGES))
    ours = statistics.median(seconds["ours"])
    print(f"{'ours':12} {len(pages) / ours:8.0f} pages a second, {megabytes / ours:.1f} million characters")
    missed = []
    for name, limit in LIMITS.items():
        theirs = statistics.median(seconds[name])
        ratio = theirs / ours
        print(f"{name:12} {len(pages) / theirs:8.0f} pages a second: ours is {ratio:.2f} times (limit {limit:g})")
        if ratio < limit:
            missed.append(name)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def markdown(page: str) -> str:
    content = latexml_page(Document(id="", text=page), FIELDS, Counter())
    return resiliparse_markdown(content.text) if content else ""


FIELDS = unwrap_versioned_value(LatexmlContent())

if __name__ == "__main__":
    sys.exit(main())
