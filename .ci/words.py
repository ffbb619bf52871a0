"""Find the words that CONTRIBUTING.md lists to avoid: `python .ci/words.py [path …]`, by default in ROOMS.

In:  Python files (docstrings, comments, names of variables) and Markdown pages outside of code blocks.
Out: a line for each place, and exit code 1 if one exists.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    ".ci",
    "README.md",
    "infra",
    "marin_assets/defaults",
    "marin_assets/documents",
    "marin_assets/experiments",
    "marin_assets/inference",
    "marin_assets/stages",
    "marin_assets/step",
    "marin_resources/drift",
    "marin_resources/infra",
    "marin_resources/ray_tpu/environment",
    "marin_resources/ray_tpu/fleet",
    "marin_resources/ray_tpu/job",
    "marin_resources/ray_tpu/log",
    "marin_resources/ray_tpu/shards",
    "marin_resources/ray_tpu/slices",
    "marin_resources/ray_tpu/worker",
    "marin_resources/storage/collect",
    "marin_resources/storage/control",
    "marin_resources/storage/index",
    "marin_resources/storage/lease",
    "marin_resources/storage/mirror",
    "marin_resources/storage/output",
    "marin_resources/storage/transfer",
    "marin_resources/wire",
)
"""Rooms without these words."""

WORDS = {
    r"tell|tells|telling|told": "report, describe",
    r"say|says|saying|said": "report, state",
    r"ask|asks|asking|asked": "request, query",
    r"go on|goes on|went on|going on": "continue, resume",
    r"anew": "again",
    r"mend|mends|mended|mending": "fix, repair",
    r"lies at|lie at": "is stored at",
    r"there is|is there|there are|are there": "exists",
}
NAMES = frozenset({"found", "each", "one", "known", "wanted", "some", "left", "there", "said", "told", "what", "who"})
"""Names of variables that do not describe what they hold."""
BEGINNINGS = ("What ", "Who ", "Which ", "Where ", "How ", "Of ", "The same", "Likewise", "Its ", "Theirs")
"""Beginnings of docstrings: relative clauses, and references to the line above."""

PATTERNS = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), use) for pattern, use in WORDS.items()]
CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def places(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and sentence of each place of a file."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from _words(_without_code(text), 1)
        return
    tree = ast.parse(text)
    for line, docstring in _docstrings(tree):
        if docstring.lstrip().startswith(BEGINNINGS):
            yield line, f"a docstring begins with {docstring.split()[0]!r}: begin with a noun or a verb"
        yield from _words(_without_code(docstring), line)
    for line, name in _variables(tree):
        if name in NAMES:
            yield line, f"a variable is called {name!r}: use the noun of what it holds"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from _words(_without_code(token.string), token.start[0])


def _words(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    for pattern, use in PATTERNS:
        for match in pattern.finditer(text):
            yield first_line + text.count("\n", 0, match.start()), f"{match.group()!r}: use {use}"


def _without_code(text: str) -> str:
    return CODE_BLOCK.sub(lambda match: "\n" * match.group().count("\n"), text)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string that stands alone as a statement: also the ones under fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def _variables(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that are assigned to, and parameters, without the fields of classes: these may be part of a record."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {id(part.target) for node in classes for part in node.body if isinstance(part, ast.AnnAssign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def main(arguments: list[str]) -> int:
    roots = [Path(argument) for argument in arguments] or [ROOT / room for room in ROOMS]
    files = [file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*")))]
    count = 0
    for file in files:
        if file.suffix in (".py", ".md"):
            for line, sentence in sorted(places(file)):
                count += 1
                print(f"{file}:{line}: {sentence}")
    print(f"{count} words to avoid in {len(files)} files")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
