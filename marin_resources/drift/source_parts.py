"""Split a module into parts, its top-level statements, each with the names that it defines and uses.

A part counts where one of its names is used. A part with an *effect* counts wherever its module is imported: a call as
a statement, a change of another module, a decorator of the project, which may register its function. In doubt a part
uses more names than needed, and never fewer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from marin_resources.drift.source_names import (
    BLOCKS,
    DEFINITIONS,
    FUNCTIONS,
    Chain,
    bound_names,
    children,
    root_of,
    uses_in,
)

DYNAMIC = frozenset({"globals", "locals", "vars", "eval", "exec", "compile", "__import__", "importlib", "inspect"})
DYNAMIC_ATTRIBUTES = frozenset({"__dict__", "__globals__", "__builtins__", "import_module"})
"""Names through which code reaches definitions that it does not name."""
BY_NAME = {"getattr": 1, "setattr": 1, "delattr": 1, "hasattr": 1, "attrgetter": 0, "methodcaller": 0}
"""Functions that take an attribute's name -> its position. A computed name may be any."""


@dataclass(frozen=True, kw_only=True)
class Binding:
    """A name that an import binds."""

    name: str
    level: int
    module: str
    attribute: str | None = None
    """`b` of `from a import b`; None for `import a`."""
    renames: bool = False
    """`import a.b as x` binds x to a.b; `import a.b` binds a."""
    at_import: bool = True
    """Executed when its module is imported; False inside a function."""


@dataclass(frozen=True, kw_only=True)
class Part:
    code: str
    """The tokens of the statement, without layout."""
    names: frozenset[str]
    """The names that it defines or changes."""
    uses: frozenset[Chain] = frozenset()
    bindings: tuple[Binding, ...] = ()
    has_effect: bool = False
    calls: frozenset[str] = frozenset()
    """First names of the functions called as statements. One that declares or runs steps has no effect on data:
    `executor_main([...])`."""
    decorators: frozenset[str] = frozenset()
    """First names of its decorators. One of the project may register the function."""
    bases: frozenset[Chain] = frozenset()
    """Base classes. One of the project may register its subclasses."""
    unread_calls: frozenset[str] = frozenset()
    """First names of the functions called for a name that the module never reads. One of an installed package is called
    for its effect (`_ = numpy.seterr(...)`), one of the project declares a step for another module."""
    is_dynamic: bool = False
    """May reach any definition of its module."""
    is_dynamic_everywhere: bool = False
    """May reach any class (`__subclasses__`)."""


def split(body: Iterable[tuple[ast.stmt, str]]) -> tuple[Part, ...]:
    """The parts of a module, from its statements and the tokens of each."""
    statements = [(statement, code) for statement, code in body if not _is_skipped(statement)]
    uses = [frozenset(uses_in(statement)) for statement, _ in statements]
    module = _Module([statement for statement, _ in statements], frozenset(chain[0] for used in uses for chain in used))
    return tuple(
        part for (node, code), used in zip(statements, uses, strict=True) for part in _parts(node, code, used, module)
    )


class _Module:
    """The facts about a module that its parts need about each other."""

    def __init__(self, statements: list[ast.stmt], used: frozenset[str]) -> None:
        bindings = [binding for statement in statements for binding in _bindings(statement) if binding.at_import]
        self.imported = {binding.name for binding in bindings}
        simple = [node for statement in statements for node in _simple(statement)]
        self.containers = {t.id for n in simple if _is_container(n) for t in _targets(n) if isinstance(t, ast.Name)}
        stored = {t.id for node in simple for t in _targets(node) if isinstance(t, ast.Name)}
        self.unread = stored - used


def _parts(statement: ast.stmt, code: str, used: frozenset[Chain], module: _Module) -> Iterator[Part]:
    bindings = tuple(_bindings(statement))
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for binding in bindings:  # one for each name, as one more name in the line changes nothing for the others
            always = binding.attribute == "*" or binding.module == "__future__"
            text = repr((binding.name, binding.level, binding.module, binding.attribute))
            yield Part(code=text, names=frozenset({binding.name}), bindings=(binding,), has_effect=always)
        return
    simple = list(_simple(statement))
    classes = [node for node in simple if isinstance(node, ast.ClassDef)]
    decorators = [d for node in [*simple, *_methods(classes)] for d in getattr(node, "decorator_list", ())]
    attributes, computes_names = _reflection(statement)
    changed = {root for node in simple for root in _changed(node, module)}
    yield Part(
        code=code,
        names=frozenset(bound_names([statement]) | changed),
        uses=used,
        bindings=bindings,
        has_effect=any(_has_effect(node, module) for node in simple),
        calls=frozenset(name for node in simple if (name := _called(node)) and not any(_changed(node, module))),
        decorators=frozenset(root_of(d) or "" for d in decorators),
        bases=frozenset(chain for node in classes for base in node.bases for chain in uses_in(base)),
        unread_calls=frozenset(root for node in simple for root in _unread_calls(node, module)),
        is_dynamic=any(chain[0] in DYNAMIC or chain[:2] == ("sys", "modules") for chain in used) or computes_names,
        is_dynamic_everywhere="__subclasses__" in attributes,
    )


def _has_effect(node: ast.stmt, module: _Module) -> bool:
    """Whether executing a simple statement may change more than names and objects of its own module."""
    if isinstance(node, ast.ClassDef):
        calls = any(isinstance(inner, ast.Expr) and not isinstance(inner.value, ast.Constant) for inner in node.body)
        return calls or bool(node.keywords)  # of a metaclass, or of __init_subclass__
    if isinstance(node, ast.Expr):
        return not (isinstance(node.value, ast.Constant) or _called(node) or any(True for _ in _changed(node, module)))
    if any(root_of(place) in module.imported for place in _places(node)):
        return True
    return any(isinstance(t, ast.Name) and t.id == "_" for t in _targets(node))


def _called(node: ast.stmt) -> str | None:
    """`a` for the statement `a.b(...)`; None for another kind."""
    return root_of(node.value.func) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None


def _changed(node: ast.stmt, module: _Module) -> Iterator[str]:
    """The module's own objects that a statement changes: `TABLE["a"] = 1`, `steps.append(step)`."""
    yield from (root for place in _places(node) if (root := root_of(place)) is not None)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        method = node.value.func
        owner = method.value if isinstance(method, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id in module.containers:
            yield owner.id


def _methods(classes: Iterable[ast.ClassDef]) -> Iterator[ast.stmt]:
    for definition in classes:
        inner = [node for node in definition.body if isinstance(node, DEFINITIONS)]
        yield from inner
        yield from _methods(node for node in inner if isinstance(node, ast.ClassDef))


def _unread_calls(node: ast.stmt, module: _Module) -> Iterator[str]:
    names = {target.id for target in _targets(node) if isinstance(target, ast.Name)}
    if names and names <= module.unread:
        yield from (root_of(call.func) or "" for call in ast.walk(node) if isinstance(call, ast.Call))


def _places(node: ast.stmt) -> list[ast.expr]:
    """The attributes and items that a statement assigns or deletes."""
    leaves = [leaf for target in _targets(node) for leaf in _leaves(target)]
    return [leaf for leaf in leaves if isinstance(leaf, ast.Attribute | ast.Subscript)]


def _leaves(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [leaf for part in target.elts for leaf in _leaves(part)]
    return _leaves(target.value) if isinstance(target, ast.Starred) else [target]


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor) else []


def _is_container(node: ast.stmt) -> bool:
    value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _reflection(statement: ast.stmt) -> tuple[set[str], bool]:
    """The attributes in the statement, and whether it reaches attributes that it does not name."""
    attributes: set[str] = set()
    computed = False
    waiting: list[Any] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.Call):
            place = BY_NAME.get(str(getattr(node.func, "id", None) or getattr(node.func, "attr", "")))
            names = node.args[place : place + 1] if place is not None else []
            computed = computed or any(not isinstance(name, ast.Constant) for name in names)
        waiting += children(node)
    return attributes, computed or not DYNAMIC_ATTRIBUTES.isdisjoint(attributes)


def _bindings(statement: ast.AST) -> Iterator[Binding]:
    """The names that imports in the statement bind, also inside functions."""
    waiting: list[tuple[Any, bool]] = [(statement, True)]
    while waiting:
        node, at_import = waiting.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                renames = alias.asname is not None
                yield Binding(name=name, level=0, module=alias.name, renames=renames, at_import=at_import)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name, module = alias.asname or alias.name, node.module or ""
                yield Binding(name=name, level=node.level, module=module, attribute=alias.name, at_import=at_import)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            fields = ("orelse",) if is_type_checking(node) else BLOCKS
            inside = at_import and not isinstance(node, FUNCTIONS)
            waiting += [(child, inside) for field in fields for child in getattr(node, field, ())]


def _simple(statement: Any) -> Iterator[ast.stmt]:
    """The statements in a statement that its execution executes: not the bodies of functions and classes."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, DEFINITIONS):
            fields = ("orelse",) if is_type_checking(node) else BLOCKS
            waiting += [child for field in fields for child in getattr(node, field, ())]


def is_type_checking(statement: Any) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`, whose body is never executed."""
    test = statement.test if isinstance(statement, ast.If) else None
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def _is_skipped(statement: ast.stmt) -> bool:
    """Whether no import executes anything of the statement."""
    without_else = not getattr(statement, "orelse", ())
    return without_else and (is_type_checking(statement) or _is_main(statement))


def _is_main(statement: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__":`. A worker imports a script under another name."""
    test = statement.test if isinstance(statement, ast.If) else None
    if not (isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.Eq]):
        return False
    sides = (test.left, test.comparators[0])
    names, values = [{getattr(side, field, None) for side in sides} for field in ("id", "value")]
    return "__name__" in names and "__main__" in values
