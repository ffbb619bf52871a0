"""The program that `pydoc.py` runs in a clean interpreter: names of modules and topics -> HTML pages.

In:  stdin, one JSON object {"modules": [...], "topics": [...]}; argv[1], the number of a pipe that stays open as long
     as the parent lives.
Out: stdout, one JSON line a page {"source", "name", "html"}, or {"source", "name", "failed": <why>}.

pydoc prints what it finds in the running process: values of constants and default arguments (`os.environ` among them),
addresses, paths. Here a constant is shown by its type, and a default value only if it is a literal of the source. The
page's layout tables become headings, so that the text of a page has its outline. A page can differ a little by what was
imported before it (8 of 735 pages between 1 and 8 shards), so the names and their order are part of what is asked.
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
"""As in `<function f at 0x7f3a…>`. Numbers in the documentation's own text (`crc & 0xffffffff`) do not follow "at".
Topics hold addresses too: the examples of "compound" and "try" do in CPython 3.11.2."""

_signature = inspect.signature


class Pages(pydoc.HTMLDoc):
    """pydoc's HTML without values, addresses, links into this machine's files, and layout tables."""

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
    asked = json.load(sys.stdin)
    os.environ.clear()
    inspect.signature = signature_of_literals
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some modules print when they are imported
        for page in render(asked["modules"], asked["topics"]):
            out.write(json.dumps(page) + "\n")
    os._exit(0)  # no exit handler of 600 modules


def die_with_parent(pipe: int) -> None:
    """Wait until the other end of the pipe is gone, which only the parent holds."""
    os.read(pipe, 1)
    os._exit(1)


def render(modules: list[str], topics: list[str]) -> Iterator[dict[str, str]]:
    for name in modules:
        try:
            page = module_page(name)
        except (Exception, SystemExit) as error:  # any module may fail here: another platform's, a missing library
            yield {"source": "pydoc", "name": name, "failed": f"{type(error).__name__}: {error}"}
        else:
            yield {"source": "pydoc", "name": name, "html": page}
    for name in topics:
        yield {"source": "topics", "name": name, "html": topic_page(name)}


def module_page(name: str) -> str:
    pages, module = Pages(), importlib.import_module(name)
    vars(module).pop("__warningregistry__", None)  # there or not by what was imported before
    return pages.page(name, pages.document(module, name))


def topic_page(name: str) -> str:
    from pydoc_data.topics import topics

    pages = Pages()
    return pages.page(html.escape(name), pages.heading(html.escape(name)) + f"<p>{pages.preformat(topics[name])}</p>")


def signature_of_literals(*args: Any, **kwargs: Any) -> inspect.Signature:
    """`inspect.signature`, in which a default value that is no literal of the source is a name, or `...`."""
    signature = _signature(*args, **kwargs)
    shown = [
        p if p.default is p.empty or is_literal(p.default) else p.replace(default=Shown(p.default))
        for p in signature.parameters.values()
    ]
    return signature.replace(parameters=shown)


def is_literal(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(is_literal, value))
    if type(value) is str:
        return len(value) < 2 or not os.path.isabs(value)  # a path of this machine, such as sys.executable
    return value is None or type(value) in (bool, int, float, complex, bytes, type(...))


class Shown:
    """Stands for a default value: the name of a function or class, `...` for anything else."""

    def __init__(self, value: Any) -> None:
        named = isinstance(value, type) or inspect.isroutine(value)
        self.text = str(getattr(value, "__qualname__", "...")) if named else "..."

    def __repr__(self) -> str:
        return self.text


if __name__ == "__main__":
    main()
