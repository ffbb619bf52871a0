"""A link of wikitext: to a category, to a file, to the page in another language, or to show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from marin_assets.stages.transform.wikitext.content import CATEGORIES, FILES

LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*|simple")


class Links:
    """The links of one page."""

    def __init__(self, namespaces: Mapping[str, str], counts: Counter[str]) -> None:
        """`namespaces`: the wiki's own names of files, "6", and of categories, "14"."""
        self._files = {*FILES, _folded(namespaces.get("6", "file"))}
        self._categories = {*CATEGORIES, _folded(namespaces.get("14", "category"))}
        self._counts = counts
        self.categories: list[str] = []

    def shown(self, title: str, text: str | None) -> str:
        """Return the text of a link; of a category, a file and another language "", and note the first two."""
        is_shown = title.lstrip().startswith(":")
        title = title.strip().lstrip(":").strip()
        prefix, colon, rest = title.partition(":")
        namespace = _folded(prefix)
        if colon and namespace in self._categories:
            if not is_shown:
                self.categories.append(" ".join(rest.replace("_", " ").replace("\x04", " ").split()))
                return ""
            title = rest.strip()
        elif colon and namespace in self._files:
            if not is_shown:
                self._counts["images"] += 1
                return ""
            title = rest.strip()
        elif colon and not is_shown and text is None and LANGUAGE.fullmatch(prefix):
            return ""
        return text.strip() if text and text.strip() else title


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())
