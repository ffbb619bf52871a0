"""The main content of real manuals in many languages: Debian's packages, where they are installed or unpacked.

    apt-get install debian-handbook installation-guide-amd64 maint-guide maint-guide-ja developers-reference-de

or, without root, `apt-get download` these, `dpkg-deb -x` each into a folder, and name it in MARIN_DEBIAN_ROOT. The
known content is all text of a page without the elements of navigation that the manual's generator writes.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest
from foreign_pages import shared_ngrams

from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.main_markdown import main_markdown
from marin_assets.step.values import unwrap_versioned_value

ROOT = Path(os.environ.get("MARIN_DEBIAN_ROOT", "/"))
NAVIGATION = {
    "debian-handbook": (".docnav", "#title", ".toc", ".mediaobject"),
    "installation-guide-amd64": (".navheader", ".navfooter", ".toc"),
    "maint-guide": (".navheader", ".navfooter", ".toc"),
    "developers-reference": (
        ".sphinxsidebar",
        ".related",
        ".footer",
        ".headerlink",
        ".wy-nav-side",
        "footer",
        ".toctree-wrapper",
    ),
}
"""Package -> selectors of its navigation."""
PAGES = 60
"""Pages of a package that are read, of all its languages."""


def pages_of(package: str) -> list[Path]:
    folders = (*ROOT.glob(f"usr/share/doc/{package}*"), *ROOT.glob(f"usr/share/{package}*"))
    paths = {path.resolve() for folder in folders for path in folder.rglob("*.html")}
    chosen = [path for path in sorted(paths) if not path.name.startswith(("index", "developers-reference"))]
    return random.Random(0).sample(chosen, min(PAGES, len(chosen)))


@pytest.mark.parametrize("package", NAVIGATION)
def test_the_text_of_a_manual_is_found_in_all_its_languages(package: str) -> None:
    from resiliparse.extract.html2text import extract_plain_text

    if not (paths := pages_of(package)):
        pytest.skip(f"Debian's package {package} is not below {str(ROOT)!r}: install it, or set MARIN_DEBIAN_ROOT")
    fields = unwrap_versioned_value(MainContent())
    scores = []
    for path in paths:
        page = path.read_text(errors="replace")
        content = extract_plain_text(page, main_content=False, alt_texts=False, skip_elements=NAVIGATION[package])
        if len(content) > 500:
            scores.append(shared_ngrams(content, main_markdown(page, fields, Counter()) or ""))
    precision, recall = mean(score[0] for score in scores), mean(score[1] for score in scores)
    assert 2 * precision * recall / (precision + recall) >= 0.93, (len(scores), precision, recall)
