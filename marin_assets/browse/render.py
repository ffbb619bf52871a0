"""Facts as pages, by the templates of this folder. Jinja escapes every value of every template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marin_assets.browse.query import address

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["address"] = address
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["size"] = size_text
    environment.filters["decimal"] = decimal_text
    return environment


def render(template: str, facts: Mapping[str, Any]) -> bytes:
    """The page of these facts, in UTF-8."""
    return _environment().get_template(f"{template}.html.j2").render(facts).encode("utf-8", "backslashreplace")


def render_pieces(template: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """The pieces of a page, each as soon as its facts are known."""
    return _environment().get_template(f"{template}.html.j2").generate(facts)


def decimal_text(number: float | None) -> str:
    """A number of an address as people write it, with all its digits: "100", "0.1"; empty for None."""
    if number is None:
        return ""
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**53 else repr(number)


def size_text(bytes_: int) -> str:
    """Bytes for people: "1.5 MB"."""
    size, units = float(bytes_), ["B", "kB", "MB", "GB"]
    while size >= 1000 and units[1:]:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" or size >= 100 else f"{size:.1f} {units[0]}"
