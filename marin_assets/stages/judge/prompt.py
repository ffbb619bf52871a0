"""A judge's prompt: a text with fields in braces. A brace of the text itself is doubled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter

from marin_assets.stages.judge.conversations import JudgeError
from marin_resources.types.near_names import expected_one_of


class JudgePrompt:
    """A checked prompt."""

    def __init__(self, text: str, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Raises JudgeError for braces that do not match, an unknown field, or a required one that is missing."""
        try:
            self._parts = list(Formatter().parse(text))
        except ValueError as error:
            raise JudgeError(
                f"The judge's prompt {text!r:.100} cannot be read: {error}. Double a brace that is meant as one."
            ) from None
        fields = {name for _, name, _, _ in self._parts if name is not None}
        for _, name, form, conversion in self._parts:
            if name is not None and (name not in (*required, *optional) or form or conversion):
                written = f"{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}"
                raise JudgeError(
                    f"The judge's prompt has the field {{{written}}}, "
                    f"{expected_one_of(written, (*required, *optional))} Double a brace that is meant as one."
                )
        for name in required:
            if name not in fields:
                raise JudgeError(
                    f"The judge's prompt {text!r:.100} has no {{{name}}}, which the judge needs. Put it in."
                )

    def render(self, values: Mapping[str, str]) -> str:
        """The prompt with these values. A brace in a value is text."""
        return "".join(literal + ("" if name is None else values[name]) for literal, name, _, _ in self._parts)
