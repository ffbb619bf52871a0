"""Our conversion of HTML to Markdown against two libraries' and against Resiliparse's plain text.

    python tests/benchmarks/html_markdown.py [FOLDER] [ROUNDS]

The pages are the `.html` files below FOLDER, at most 500. Without one they are pydoc's own pages of the standard
library, each with a table of its names, code and source. The libraries run in an environment of their own. One process
and one core each, turn by turn; medians of processor time count.

    markdownify        BeautifulSoup's tree, read in Python
    html-to-markdown   a tree read in Rust
    plain text         Resiliparse alone: what the extraction costs, without headings, lists, code and tables

Limits: 5 times markdownify's speed, 0.1 times html-to-markdown's, 0.1 times that of plain text. Exits 1 if one is
missed. Takes a minute.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import pydoc
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown

PACKAGES = ("markdownify==1.2.3", "html-to-markdown==3.21.0")
SIDE = Path(__file__).resolve().parent / "sides/html_peers.py"
LIMITS = {"markdownify": 5.0, "html-to-markdown": 0.1, "plain text": 0.1}
MODULES = "argparse ast asyncio collections ctypes decimal email.message json logging os pathlib re ssl string typing"
MAX_PAGES = 500


def main() -> int:
    pages = pages_of(Path(sys.argv[1])) if len(sys.argv) > 1 else list(map(page_of, MODULES.split()))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{len(pages)} pages, {sum(map(len, pages)) / 1e6:.1f} million characters")
    seconds: dict[str, list[float]] = {name: [] for name in ("ours", *LIMITS)}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/pages.jsonl"
        Path(path).write_text("".join(json.dumps(page) + "\n" for page in pages))
        for _ in range(rounds):
            seconds["ours"].append(seconds_of(resiliparse_markdown, pages))
            seconds["plain text"].append(seconds_of(plain_text, pages))
            for name in ("markdownify", "html-to-markdown"):
                seconds[name].append(run_peer(name, path, PACKAGES))
    ours = statistics.median(seconds["ours"])
    print(f"{'ours':18} {len(pages) / ours:8.0f} pages a second")
    missed = []
    for name, limit in LIMITS.items():
        theirs = statistics.median(seconds[name])
        ratio = theirs / ours
        print(
            f"{name:18} {len(pages) / theirs:8.0f} pages a second: ours is {ratio:.2f} times as fast (limit {limit:g})"
        )
        if ratio < limit:
            missed.append(name)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def pages_of(folder: Path) -> list[str]:
    files = sorted({path.resolve() for path in folder.rglob("*.html")})
    if not files:
        raise FileNotFoundError(f"No .html files are below {str(folder)!r}. Pass a folder with pages, or none.")
    return [path.read_text(errors="replace") for path in files[:: -(-len(files) // MAX_PAGES)]]


def page_of(name: str) -> str:
    """Return pydoc's page of a module, a table of its names and its source."""
    module = importlib.import_module(name)
    rows = "".join(
        f"<tr><td><code>{name}</code></td><td>{type(value).__name__}</td>"
        f"<td>{html.escape((inspect.getdoc(value) or '').partition(chr(10))[0])}</td></tr>"
        for name, value in sorted(vars(module).items())
    )
    table = f"<table><tr><th>name</th><th>type</th><th>summary</th></tr>{rows}</table>"
    source = html.escape(inspect.getsource(module)[:10_000])
    return pydoc.html.page(name, f"{pydoc.html.document(module)}{table}<pre>{source}</pre>")


def plain_text(page: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(page)


def seconds_of(convert: Callable[[str], object], pages: list[str]) -> float:
    convert(pages[0])
    began = time.process_time()
    for page in pages:
        convert(page)
    return time.process_time() - began


def run_peer(name: str, path: str, wanted: tuple[str, ...]) -> float:
    """Return the seconds of a library, by a Python with the wanted packages."""
    uv = Path(__file__).resolve().parents[2] / ".tools/bin/uv"
    uv_path = str(uv) if uv.exists() else shutil.which("uv")
    if uv_path is None:
        raise RuntimeError(f"uv is not at {str(uv)!r} and not on the path. Run `make init` first.")
    packages = [word for package in wanted for word in ("--with", package)]
    command = [uv_path, "run", "--isolated", "--no-project", "--python", sys.executable, *packages, "python"]
    done = subprocess.run([*command, str(SIDE), name, path], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
