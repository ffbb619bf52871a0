"""The table of the known data sets, as the page docs/reference/datasets.md has it.

`python tests/support/catalogue_page.py` writes it into the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from marin_assets.datasets import FAMILIES, Chats, Corpus, Dataset, HubFiles, MessageTrees, Preferences

PAGE = Path(__file__).parents[2] / "docs/reference/datasets.md"
BEGINNING, END = "<!-- catalogue -->", "<!-- end of the catalogue -->"
TITLES = {
    "web": "Web pages",
    "code": "Code",
    "math": "Mathematics",
    "encyclopedia": "Articles, questions, papers",
    "evaluation": "Evaluation",
    "chats": "Chats and instructions",
    "preferences": "Preferences",
}


def catalogue() -> str:
    """A table for each family: a row for each data set."""
    parts = []
    for family, datasets in FAMILIES.items():
        rows = ["| name | from | revision | columns | licence | size |", "|---|---|---|---|---|---|"]
        rows += [_row(dataset) for dataset in datasets.values()]
        parts.append(f"### {TITLES[family]}\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def _row(dataset: Dataset) -> str:
    files = dataset.files
    place = f"[{files.id if isinstance(files, HubFiles) else _host(files.base)}]({files.homepage})"
    gated = ", gated" if files.gated else ""
    size = "unknown" if dataset.bytes is None else _size(dataset.bytes)
    licence = dataset.licence or "unknown"
    cells = (f"`{dataset.name}`", f"{place}{gated}", _revision(dataset), _columns(dataset), licence, size)
    return f"| {' | '.join(cells)} |"


def _host(base: str) -> str:
    return base.split("/")[2]


def _revision(dataset: Dataset) -> str:
    if not dataset.files.revision:
        return "none"
    return f"`{dataset.files.revision[:7]}`" if dataset.files.pinned else f"`{dataset.files.revision}`, not pinned"


def _columns(dataset: Dataset) -> str:
    if isinstance(dataset, MessageTrees):
        return "messages of trees"
    if isinstance(dataset, Chats | Preferences):
        return f"`{dataset.adapter}`"
    assert isinstance(dataset, Corpus)
    more = ["all"] if isinstance(dataset.metadata, str) else [f"`{column}`" for column in dataset.metadata]
    return ", ".join([*(f"`{column}`" for column in (dataset.text, dataset.id) if column), *more])


def _size(count: int) -> str:
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def with_catalogue(page: str) -> str:
    """The page with the tables of now."""
    pattern = re.compile(f"{re.escape(BEGINNING)}.*{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGINNING}\n\n{catalogue()}\n\n{END}", page)


if __name__ == "__main__":
    PAGE.write_text(with_catalogue(PAGE.read_text()))
