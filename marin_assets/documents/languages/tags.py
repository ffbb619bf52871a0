"""Tags of languages: from what a model calls them, and from what a person writes.

`codes.json` has the FineWeb-2 code of each label of fastText's model of 176 languages. Labels of GlotLID are tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from marin_resources.types.errors import MarinError

SCRIPTS_OF_LANGUAGES = {"jpn": ("Jpan", ("Hira", "Kana", "Hani")), "kor": ("Hang", ("Hang", "Hani"))}
"""Languages that are written in several of Unicode's scripts: the code of these together, and the scripts."""
UNDETERMINED = "Zyyy"
FORM = re.compile(r"([a-z]{2,3})(?:_([A-Z][a-z]{3}))?")


class LanguageTagError(MarinError, ValueError):
    """A text that does not name a language: one sentence."""


@dataclass(frozen=True)
class Language:
    """A language in one script, or in any."""

    code: str
    script: str = ""
    """Empty: any."""

    def has(self, tag: str) -> bool:
        return tag == f"{self.code}_{self.script}" if self.script else tag.startswith(f"{self.code}_")


def language_of(text: str) -> Language:
    """The language that a person names: "de", "deu", "srp_Cyrl". Raises LanguageTagError."""
    match = FORM.fullmatch(text) if isinstance(text, str) else None
    code = codes().get(match[1], "") if match and len(match[1]) == 2 else match[1] if match else ""
    if not match or not code:
        raise LanguageTagError(
            f"The language is {text!r:.80}, expected a code of ISO 639 such as 'de' or 'deu', or with a script "
            "'srp_Cyrl'."
        )
    return Language(code, match[2] or "")


def tag_of(label: str, scripts: Mapping[str, int]) -> str:
    """The tag of a model's label. A label without a script has that of most characters of the text.

    `scripts`: the number of characters of each script in the text, as `scripts_of` counts them.
    """
    if "_" in label:
        return label
    code = codes().get(label, label)
    counts = dict(scripts)
    if code in SCRIPTS_OF_LANGUAGES:
        together, parts = SCRIPTS_OF_LANGUAGES[code]
        counts[together] = sum(counts.pop(part, 0) for part in parts)
    return f"{code}_{max(sorted(counts), key=counts.__getitem__, default=UNDETERMINED)}"


def scripts_of_tag(tag: str) -> tuple[str, ...]:
    """Unicode's codes of the scripts in which a tag's language is written."""
    code, _, script = tag.partition("_")
    return SCRIPTS_OF_LANGUAGES[code][1] if code in SCRIPTS_OF_LANGUAGES else (script,)


@cache
def codes() -> dict[str, str]:
    """The code of each label of fastText's model of 176 languages."""
    text = files("marin_assets.documents.languages").joinpath("codes.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
