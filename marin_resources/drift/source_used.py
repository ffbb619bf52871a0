"""Follow a function through the project: the definitions that it uses, and those that these use, module by module.

    used_source(...)   module -> digest of what the function uses in it; a module of which it uses nothing is left out

A module counts as a whole where its parts cannot be distinguished: it does not parse, is used as a value (`f(module)`),
imports `*` from the project, or names what it uses at run time (`globals()`, `getattr` with a computed name). Code that
an import executes counts too: the parts with an effect of every imported module.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Sequence

from marin_resources.drift.source_file import DIGITS, read_code, read_parts
from marin_resources.drift.source_modules import Module, Modules, imported_module, is_plumbing, with_parents
from marin_resources.drift.source_names import Chain
from marin_resources.drift.source_parts import Binding, Part


def used_source(
    modules: Modules, starts: Sequence[tuple[Module, str]], counts: Callable[[Module], bool]
) -> dict[str, str]:
    """The digests of what the definitions `starts`, as (module, qualified name), use. `counts`: modules to follow."""
    used = _Used(modules, counts)
    for module, name in starts:
        used.enter(module.name)
        used.name(module, name.partition(".")[0], (), from_outside=True)
    return used.digests()


PURE = frozenset(
    {"collections", "contextvars", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "itertools"}
    | {"operator", "pathlib", "re", "string", "threading", "types", "typing", "typing_extensions", "uuid"}
)
"""Modules of the standard library whose calls and decorators change nothing elsewhere."""


class Origin(enum.Enum):
    """The source of a name."""

    BUILTIN = enum.auto()
    """Or a module of the standard library without effects."""
    INSTALLED = enum.auto()
    """Or the plumbing, which counts by module."""
    DECLARES = enum.auto()
    """A module of the project that does not count."""
    FOLLOWED = enum.auto()


class _Used:
    def __init__(self, modules: Modules, counts: Callable[[Module], bool]) -> None:
        self.modules = modules
        self.counts = counts
        self.entered: dict[str, Module | None] = {}
        self.taken: dict[str, set[int]] = {}
        self.whole: set[str] = set()
        self.everything = False
        self.met: set[tuple[str, str, Chain, bool]] = set()
        self.imported: list[Module] = []
        self.waiting: list[tuple[Module, Part]] = []
        self.by_name: dict[str, dict[str, list[int]]] = {}

    def digests(self) -> dict[str, str]:
        while self.imported or self.waiting:
            if self.imported:
                self._execute(self.imported.pop())
            else:
                self._follow_part(*self.waiting.pop())
        entered = {name: module for name, module in sorted(self.entered.items()) if module is not None}
        if self.everything:
            return {name: read_code(module.file).digest for name, module in entered.items()}
        digests = {name: self._digest(module) for name, module in entered.items()}
        return {name: digest for name, digest in digests.items() if digest}

    def enter(self, name: str) -> Module | None:
        """Import a module: its parents, its imports, and its parts with an effect. None if it does not count."""
        for part in with_parents(name):
            if part not in self.entered:
                module = self.modules.find(part)
                counted = module if module and (part in self.modules.start or self.counts(module)) else None
                self.entered[part] = counted
                if counted:
                    self.imported.append(counted)
        return self.entered[name]

    def name(self, module: Module, name: str, rest: Chain, *, from_outside: bool) -> None:
        """A use of the module's `name`, and of the attributes `rest` of it."""
        key = (module.name, name, rest, from_outside)
        if key in self.met:
            return
        self.met.add(key)
        places = self._names(module).get(name, [])
        parts = self._parts(module)
        for place in places:
            self._take(module, place)
            for binding in parts[place].bindings:
                if binding.name == name:
                    self._binding(module, binding, rest)
        if from_outside:
            is_module = module.is_package and self.enter(f"{module.name}.{name}") is not None
            if is_module:
                self._module(f"{module.name}.{name}", rest)
            elif not places:  # created at run time
                self._take_whole(module)

    def _execute(self, module: Module) -> None:
        if read_parts(module.file) is None:
            self.whole.add(module.name)
        for place, part in enumerate(self._parts(module)):
            for binding in part.bindings:
                if binding.at_import:
                    self._import(module, binding)
            if part.has_effect or self._registers(module, part):
                self._take(module, place)

    def _import(self, module: Module, binding: Binding) -> None:
        target = self._target(module, binding)
        imported = self.enter(target) if target else None
        if binding.attribute == "*":
            if imported is not None:
                self._take_whole(module)
                self._take_whole(imported)
        elif binding.attribute is not None and (imported is None or imported.is_package):
            self.enter(f"{target}.{binding.attribute}" if target else binding.attribute)

    def _registers(self, module: Module, part: Part) -> bool:
        """Whether executing the part may change what other parts see, by what its names stand for."""
        if any(self._origin(module, name) is not Origin.DECLARES for name in part.calls):
            return True
        if any(self._origin(module, name) is Origin.FOLLOWED for name in part.decorators):
            return True
        if any(self._origin(module, name) is Origin.INSTALLED for name in part.unread_calls):
            return True
        return any(self._sees_subclasses(module, base, set()) for base in part.bases)

    def _origin(self, module: Module, name: str) -> Origin:
        places = self._names(module).get(name, [])
        bindings = [b for place in places for b in self._parts(module)[place].bindings if b.name == name]
        if not places:
            return Origin.BUILTIN
        if bindings and all(binding.module.partition(".")[0] in PURE for binding in bindings):
            return Origin.BUILTIN
        modules = [self.modules.find(self._target(module, binding)) for binding in bindings]
        if not bindings or any(m is not None and (m.name in self.modules.start or self.counts(m)) for m in modules):
            return Origin.FOLLOWED
        declares = any(m is not None and not is_plumbing(m.name) for m in modules)
        return Origin.DECLARES if declares else Origin.INSTALLED

    def _sees_subclasses(self, module: Module, base: Chain, seen: set[tuple[str, Chain]]) -> bool:
        """Whether a base class of the project has a metaclass or an `__init_subclass__`."""
        if (module.name, base) in seen:
            return False
        seen.add((module.name, base))
        for place in self._names(module).get(base[0], []):
            part = self._parts(module)[place]
            if "__init_subclass__" in part.code or part.has_effect:
                return True
            if any(self._sees_subclasses(module, other, seen) for other in part.bases):
                return True
            for binding in part.bindings:
                if binding.name == base[0] and self._any_sees(self._target(module, binding), binding, base[1:], seen):
                    return True
        return False

    def _any_sees(self, target: str, binding: Binding, rest: Chain, seen: set[tuple[str, Chain]]) -> bool:
        if binding.attribute is not None:
            rest = (binding.attribute, *rest)
        elif not binding.renames:
            target = target.partition(".")[0]
        for end in range(len(rest)):
            module = self.modules.find(".".join((target, *rest[:end])))
            if module is not None and self._sees_subclasses(module, rest[end:], seen):
                return True
        return False

    def _follow_part(self, module: Module, part: Part) -> None:
        if part.is_dynamic:
            self._take_whole(module)
        self.everything = self.everything or part.is_dynamic_everywhere
        inner: dict[str, list[Binding]] = {}
        for binding in part.bindings:
            inner.setdefault(binding.name, []).append(binding)
            if not binding.at_import:
                self._import(module, binding)
        for root, *rest in part.uses:
            for binding in inner.get(root, ()):
                self._binding(module, binding, tuple(rest))
            self.name(module, root, tuple(rest), from_outside=False)

    def _binding(self, module: Module, binding: Binding, rest: Chain) -> None:
        """A use of the name that an import binds, with its attributes `rest`."""
        target = self._target(module, binding)
        if binding.attribute is None:
            self._module(target if binding.renames else target.partition(".")[0], rest)
        elif binding.attribute != "*":
            self._module(target, (binding.attribute, *rest))

    def _module(self, name: str, rest: Chain) -> None:
        """A use of a module, or of the definition in it that `rest` names."""
        module = self.enter(name) if name else None
        while module is None and rest:  # a folder without __init__.py
            if self.modules.find(name) is not None:
                return
            name, rest = f"{name}.{rest[0]}" if name else rest[0], rest[1:]
            module = self.enter(name)
        if module is None:
            return
        if rest:
            self.name(module, rest[0], rest[1:], from_outside=True)
        else:
            self._take_whole(module)

    def _take(self, module: Module, place: int) -> None:
        taken = self.taken.setdefault(module.name, set())
        if place not in taken:
            taken.add(place)
            self.waiting.append((module, self._parts(module)[place]))

    def _take_whole(self, module: Module) -> None:
        if module.name not in self.whole:
            self.whole.add(module.name)
            for place in range(len(self._parts(module))):
                self._take(module, place)

    def _digest(self, module: Module) -> str | None:
        if module.name in self.whole:
            return read_code(module.file).digest
        taken = sorted(self.taken.get(module.name, ()))
        text = "\0".join(self._parts(module)[place].code for place in taken)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS] if taken else None

    def _names(self, module: Module) -> dict[str, list[int]]:
        if module.name not in self.by_name:
            names = self.by_name[module.name] = {}
            for place, part in enumerate(self._parts(module)):
                for name in part.names:
                    names.setdefault(name, []).append(place)
        return self.by_name[module.name]

    def _target(self, module: Module, binding: Binding) -> str:
        return imported_module(module, binding.level, binding.module)

    def _parts(self, module: Module) -> tuple[Part, ...]:
        return read_parts(module.file) or ()
