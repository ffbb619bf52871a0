"""The names that a piece of code binds, and the module-level names that it uses, by Python's rules of scope.

A use is a chain: `helper.double(x)` uses ("helper", "double"), `x` uses ("x",). A name that a function assigns anywhere
is the function's own in all of it, unless it is declared global. A name that a function imports stays a use: the import
names its source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

Chain = tuple[str, ...]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold statements."""
NAME = re.compile(r"[A-Za-z_][\w.]*")


def uses_in(node: ast.AST) -> set[Chain]:
    """The chains that start with a name from outside the node's functions."""
    uses: set[Chain] = set()
    _collect(node, frozenset(), uses)
    return uses


def bound_names(nodes: Iterable[ast.AST], *, imports: bool = True) -> set[str]:
    """The names that statements bind in their own scope; `imports`: also by imports."""
    names: set[str] = set()
    waiting: list[Any] = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, DEFINITIONS):
            names.add(node.name)
            waiting += node.decorator_list
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            if imports:
                names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        # the target of a comprehension is its own, a `:=` in it is not
        waiting += [node.iter, *node.ifs] if isinstance(node, ast.comprehension) else children(node)
    return names


def children(node: Any) -> list[Any]:
    """The nodes directly below a node, as `ast.iter_child_nodes`, in half its time."""
    nodes = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            nodes += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST) and field != "ctx":
            nodes.append(value)
    return nodes


def chain_of(node: ast.AST) -> Chain | None:
    """("a", "b") for the expression `a.b`; None for another kind of expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else None


def root_of(node: ast.AST) -> str | None:
    """`a` for `a.b`, `a[0].b` and `a(1).b`; None if the expression does not start with a name."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _collect(node: ast.AST, hidden: frozenset[str], uses: set[Chain]) -> None:
    """Add the uses in the node. `hidden`: names of the functions around it."""
    if isinstance(node, ast.Attribute | ast.Name):
        chain = chain_of(node)
        if chain is None:
            _collect(node.value, hidden, uses)  # type: ignore[union-attr]
        elif chain[0] not in hidden and (len(chain) > 1 or isinstance(node.ctx, ast.Load)):
            uses.add(chain)
    elif isinstance(node, FUNCTIONS):
        _collect_function(node, hidden, uses)
    elif isinstance(node, COMPREHENSIONS):
        inner = hidden | {name for part in node.generators for name in bound_names([part.target])}
        _collect(node.generators[0].iter, hidden, uses)
        for child in children(node):
            _collect(child, inner, uses)
    else:
        if isinstance(node, ast.AnnAssign):
            _collect_text(node.annotation, uses)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in hidden:
            uses.add((node.target.id,))
        for child in children(node):
            _collect(child, hidden, uses)


def _collect_function(node: Any, hidden: frozenset[str], uses: set[Chain]) -> None:
    is_lambda = isinstance(node, ast.Lambda)
    body = [node.body] if is_lambda else node.body
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    parameters = hidden | {part.name for part in getattr(node, "type_params", ())}
    names = {part.arg for part in arguments if part is not None}
    inner = (parameters | names | bound_names(body, imports=False)) - (set() if is_lambda else _declared_global(body))
    for part in body:
        _collect(part, inner, uses)
    for part in [node.args, *getattr(node, "decorator_list", ()), getattr(node, "returns", None)]:
        if part is not None:
            _collect(part, parameters, uses)
    for annotation in [getattr(node, "returns", None), *(part.annotation for part in arguments if part is not None)]:
        if annotation is not None:
            _collect_text(annotation, uses)


def _collect_text(annotation: ast.AST, uses: set[Chain]) -> None:
    """Add the names in the quoted parts of an annotation."""
    for part in ast.walk(annotation):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            uses.update(tuple(name.rstrip(".").split(".")) for name in NAME.findall(part.value))


def _declared_global(body: Iterable[ast.AST]) -> set[str]:
    """The names that the body declares global, without the functions and classes inside it."""
    names: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global):
            names.update(node.names)
        elif not isinstance(node, DEFINITIONS):
            for field in BLOCKS:
                waiting += getattr(node, field, ())
    return names
