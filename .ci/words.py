"""Find the words that CONTRIBUTING.md lists to avoid: `python .ci/words.py [path …]`, by default in PACKAGES.

In:  Python files (their names, docstrings, comments, names of variables) and Markdown pages outside of code blocks; for
     the words of WRONG also texts of errors, logs and `--help`.
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
PACKAGES = (
    ".ci",
    "README.md",
    "SECURITY.md",
    "deploy",
    "docs",
    "infra",
    "marin_assets",
    "marin_resources",
    "marin_sensors",
)
"""Rooms without any of these words."""

WRONG = {
    r"tell|tells|telling|told": "report, describe",
    r"(?:go|goes|went|gone|going)\s+on": "continue, resume",
    r"anew": "again",
    r"mend|mends|mended|mending": "fix, repair",
    r"(?:lie|lies|lay)\s+(?:at|in|below|beside|there)": "is stored at",
    r"giv(?:e|es|ing)\s+up\s+(?:a|the|its)\s+lease": "release",
}
"""Words that are wrong in every sentence."""
WORDS = {
    **WRONG,
    r"say|says|saying|said": "report, state",
    r"ask|asks|asking|asked": "request, query",
    r"there\s+is|is\s+there|there\s+are|are\s+there": "exists",
}
NAMES = frozenset({"found", "each", "one", "known", "wanted", "some", "left", "there", "said", "told", "what", "who"})
"""Names of variables that do not describe what they hold."""
PARTICIPLE = re.compile(r"(?!unsynced|pubmed)(?:[a-z]+ed|seen|unseen|known|unknown|given|taken)\Z")
"""Names of files that do not describe what they hold; "unsynced" is a sensor, and "pubmed" a name."""
BEGINNINGS = ("What ", "Who ", "Which ", "Where ", "How ", "Of ", "The same", "Likewise", "Its ", "Theirs")
"""Beginnings of docstrings: relative clauses, and references to the line above."""

PATTERNS = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), use) for pattern, use in WORDS.items()]
WRONG_PATTERN = re.compile(rf"\b(?:{'|'.join(WRONG)})\b", re.IGNORECASE)
CODE_BLOCK = re.compile(r"^( *)(```|~~~).*?^\1\2|`[^`\n]+`|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE)
"""And the targets of links."""


def places(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and sentence of each place of a file."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from _words(_without_code(text), 1)
        return
    if PARTICIPLE.match(path.stem) or path.stem in NAMES:
        yield 1, f"a file is called {path.stem!r}: use the noun of what it holds"
    tree = ast.parse(text)
    for line, docstring in _docstrings(tree):
        if docstring.lstrip().startswith(BEGINNINGS):
            yield line, f"a docstring begins with {docstring.split()[0]!r}: begin with a noun or a verb"
        yield from _words(_without_code(docstring), line)
    for line, name in _variables(tree):
        if name in NAMES:
            yield line, f"a variable is called {name!r}: use the noun of what it holds"
    for line, comment in _comments(text):
        yield from _words(_without_code(comment), line)


def wrong_places(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and sentence of each word of WRONG; in Python also in texts that are not docstrings."""
    source = path.read_text()
    texts = [(1, source)] if path.suffix == ".md" else [*_texts(ast.parse(source)), *_comments(source)]
    for first_line, text in texts:
        if WRONG_PATTERN.search(text):
            for match in WRONG_PATTERN.finditer(_without_code(text)):
                use = next(use for pattern, use in WRONG.items() if re.fullmatch(pattern, match[0], re.IGNORECASE))
                yield first_line + _without_code(text).count("\n", 0, match.start()), f"{match[0]!r}: use {use}"


def _words(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    for pattern, use in PATTERNS:
        for match in pattern.finditer(text):
            yield first_line + text.count("\n", 0, match.start()), f"{match.group()!r}: use {use}"


def _without_code(text: str) -> str:
    return CODE_BLOCK.sub(lambda match: "\n" * match.group().count("\n"), text)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """All texts but those of one word, which are names or keys. A value in an f-string is "{}"."""
    nodes = list(ast.walk(tree))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and id(node) not in parts and " " in str(node.value):
            yield node.lineno, str(node.value)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string that stands alone as a statement: also the ones under fields and constants.

    Without the docstring of a verb of `marin`: a text that `--help` prints, like the help of its options.
    """
    help_text = _help_of_verb(tree)
    for node in ast.walk(tree):
        if node is help_text:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def _help_of_verb(tree: ast.Module) -> ast.stmt | None:
    """The docstring of a module with `add_options`."""
    is_verb = any(isinstance(node, ast.FunctionDef) and node.name == "add_options" for node in tree.body)
    return tree.body[0] if is_verb and ast.get_docstring(tree) is not None else None


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
    files = _files([Path(argument) for argument in arguments] or [ROOT / package for package in PACKAGES])
    count = 0
    for file in files:
        for line, sentence in sorted({*places(file), *wrong_places(file)}):
            count += 1
            print(f"{file}:{line}: {sentence}")
    print(f"{count} words to avoid in {len(files)} files")
    return 1 if count else 0


def _files(roots: list[Path]) -> list[Path]:
    files = (file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*"))))
    return [file for file in files if file.suffix in (".py", ".md")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
