"""Render names of modules and topics as HTML pages: the program that `pydoc.py` runs in a clean interpreter.

In:  stdin, one JSON object {"modules": [...], "topics": [...]}; argv[1], the number of a pipe that stays open while the
     parent process lives.
Out: stdout, one JSON line a page {"source", "name", "html"}, or {"source", "name", "failed": <error>}.

pydoc prints state of the running process: values of constants and default arguments (`os.environ` among them),
addresses, paths. Here a constant is shown by its type, and a default value only if it is a literal in the source. The
layout tables of a page become headings, so its text keeps the outline. Earlier imports can change a page slightly (8 of
735 pages differ between 1 and 8 shards), so the names and their order belong to the input.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import os
import pydoc
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

ADDRESS = re.compile(r"\bat( |&nbsp;)0x[0-9a-fA-F]{6,16}\b")
"""The address in `<function f at 0x7f3a…>`. Numbers in the documentation's text (`crc & 0xffffffff`) lack the "at".
Topics contain addresses too, in the examples of "compound" and "try" in CPython 3.11.2."""

_signature = inspect.signature


class Pages(pydoc.HTMLDoc):
    """pydoc's HTML without values, addresses, links to files of this machine, or layout tables."""

    def page(self, title: str, contents: str) -> str:
        return ADDRESS.sub(r"at\g<1>0x...", super().page(title, contents))

    def heading(self, title: str, *_ignored: Any) -> str:
        return f"<h1>{title}</h1>\n"

    def bigsection(self, title: str, _cls: str, contents: str, *_ignored: Any) -> str:
        return f"<h2>{title}</h2>\n<div>{contents}</div>\n"

    def section(self, title: str, _cls: str, contents: str, _width: int = 6, prelude: str = "", *_ignored: Any) -> str:
        return f"<h3>{title}</h3>\n<p>{prelude}</p>\n<div>{contents}</div>\n"

    def multicolumn(self, list: list[Any], format: Callable[[Any], str]) -> str:
        return "<ul>" + "".join(f"<li>{format(item)}</li>\n" for item in list) + "</ul>"

    def docclass(self, *args: Any, **kwargs: Any) -> str:
        return super().docclass(*args, **kwargs).replace("<hr>", "<p></p>")

    def docroutine(self, *args: Any, **kwargs: Any) -> str:
        return "<p></p>" + super().docroutine(*args, **kwargs)

    def docother(self, object: Any, name: str | None = None, *_ignored: Any) -> str:
        return (f"<strong>{html.escape(name)}</strong> = " if name else "") + html.escape(type(object).__name__)


def main() -> None:
    threading.Thread(target=die_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
    requested = json.load(sys.stdin)
    os.environ.clear()
    inspect.signature = signature_of_literals
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some modules print on import
        for page in render(requested["modules"], requested["topics"]):
            out.write(json.dumps(page) + "\n")
    os._exit(0)  # skip the exit handlers of 600 modules


def die_with_parent(pipe: int) -> None:
    """Exit when the other end of the pipe closes. Only the parent holds it."""
    os.read(pipe, 1)
    os._exit(1)


def render(modules: list[str], topics: list[str]) -> Iterator[dict[str, str]]:
    for name in modules:
        try:
            page = module_page(name)
        except (Exception, SystemExit) as error:  # any module may fail: another platform, a missing library
            yield {"source": "pydoc", "name": name, "failed": f"{type(error).__name__}: {error}"}
        else:
            yield {"source": "pydoc", "name": name, "html": page}
    for name in topics:
        yield {"source": "topics", "name": name, "html": topic_page(name)}


def module_page(name: str) -> str:
    pages, module = Pages(), importlib.import_module(name)
    vars(module).pop("__warningregistry__", None)  # exists or not depending on earlier imports
    return pages.page(name, pages.document(module, name))


def topic_page(name: str) -> str:
    from pydoc_data.topics import topics

    pages = Pages()
    return pages.page(html.escape(name), pages.heading(html.escape(name)) + f"<p>{pages.preformat(topics[name])}</p>")


def signature_of_literals(*args: Any, **kwargs: Any) -> inspect.Signature:
    """Return `inspect.signature`, with a name or `...` in place of each default value that is not a literal."""
    signature = _signature(*args, **kwargs)
    shown = [
        p if p.default is p.empty or is_literal(p.default) else p.replace(default=Shown(p.default))
        for p in signature.parameters.values()
    ]
    return signature.replace(parameters=shown)


def is_literal(value: Any) -> bool:
    """Whether the value can be written as a literal and is not a path of this machine."""
    if type(value) in (list, tuple):
        return all(map(is_literal, value))
    if type(value) is str:
        return len(value) < 2 or not os.path.isabs(value)  # sys.executable, for example
    return value is None or type(value) in (bool, int, float, complex, bytes, type(...))


class Shown:
    """Takes the place of a default value: the name of a function or class, `...` for anything else."""

    def __init__(self, value: Any) -> None:
        named = isinstance(value, type) or inspect.isroutine(value)
        self.text = str(getattr(value, "__qualname__", "...")) if named else "..."

    def __repr__(self) -> str:
        return self.text


if __name__ == "__main__":
    main()
