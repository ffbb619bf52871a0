"""A template: the text that a model gets for a document.

    Summarize this page of {metadata.site}.

    {text}

    Summary:

Fields are {text}, {id}, {source} and {metadata.<key>}; a brace of the text itself is doubled.
"""

from __future__ import annotations

import json
from string import Formatter

from marin_assets.documents import Document
from marin_resources.types.errors import MarinError

FIELDS = ("text", "id", "source")


class TemplateError(MarinError, ValueError):
    """A template without a meaning, or a document that lacks one of its fields."""


class Template:
    """A checked template."""

    def __init__(self, template: str) -> None:
        """Raises TemplateError for braces that do not match, an unknown field, or no {text}."""
        try:
            self._parts = list(Formatter().parse(template))
        except ValueError as error:
            raise TemplateError(
                f"The template {_short(template)} cannot be read: {error}. Double a brace that is meant as one."
            ) from None
        names = [name for _, name, _, _ in self._parts if name is not None]
        for _, name, form, conversion in self._parts:
            if form or conversion:
                written = f"{{{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}}}"
                raise TemplateError(
                    f"The template {_short(template)} has {written}, expected the field alone: {{{name}}}. Leave the "
                    "rest out."
                )
        for name in names:
            key = name.partition("metadata.")[2]
            if name not in FIELDS and not (name.startswith("metadata.") and key):
                raise TemplateError(
                    f"The template {_short(template)} has the field {{{name}}}, expected {{text}}, {{id}}, {{source}} "
                    "or {metadata.<key>}. Double a brace that is meant as one."
                )
        if names.count("text") > 1:
            raise TemplateError(
                f"The template {_short(template)} has {{text}} {names.count('text')} times, expected it once: a "
                "document that is longer than the window is cut there."
            )
        if "text" not in names:
            raise TemplateError(
                f"The template {_short(template)} has no {{text}}, so all documents would get one prompt. Put it in."
            )

    def render(self, document: Document, text: str | None = None) -> str:
        """The prompt for a document, with `text` in the place of its own if given. Raises TemplateError."""
        pieces: list[str] = []
        for literal, name, _, _ in self._parts:
            pieces.append(literal)
            if name is not None:
                pieces.append(self._value(document, name, document.text if text is None else text))
        return "".join(pieces)

    def _value(self, document: Document, name: str, text: str) -> str:
        if name == "text":
            return text
        if name in FIELDS:
            return str(getattr(document, name))
        key = name.partition("metadata.")[2]
        if key not in document.metadata:
            raise TemplateError(
                f"The document {document.id!r} has no {key!r} in its metadata, which the template asks for; it has "
                f"{sorted(document.metadata)}. Leave {{{name}}} out, or give every document one."
            )
        value = document.metadata[key]
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(template: str) -> str:
    return repr(template if len(template) <= 80 else f"{template[:77]}…")
