"""References to functions and classes: "package.module:name", or "/path/to/script.py:name" for a started script.

A worker imports the function or class by its reference. A script is imported from its file under a name of its own,
with its folder on the import path, so it finds the modules beside it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from marin_resources.types.errors import InvalidInputError


class UnimportableError(InvalidInputError):
    """A function or class that a worker cannot import by name."""


def reference_to(thing: Any) -> str:
    """Return the reference to a function or class. Raises UnimportableError for a lambda, a closure, a bound method."""
    name = getattr(thing, "__qualname__", None)
    module = getattr(thing, "__module__", None)
    owner = getattr(thing, "__self__", None)  # the module of a C function, the class of a class method
    if not name or not module or not (owner is None or isinstance(owner, type | ModuleType)):
        raise UnimportableError(f"{thing!r} has no name to import it by. Use a function defined in a module.")
    if "<" in name:
        raise UnimportableError(
            f"{name!r} in {module!r} is a lambda or was defined inside a function, so a worker cannot import it. "
            "Define it at the top level of a module or of the script."
        )
    return f"{_module_address(module)}:{name}"


def load(reference: str) -> Any:
    """Import and return the function or class. Raises UnimportableError with the missing name."""
    module_name, _, name = reference.rpartition(":")
    module = _load_script(module_name) if module_name.endswith(".py") else importlib.import_module(module_name)
    thing: Any = module
    for part in name.split("."):
        if not hasattr(thing, part):
            raise UnimportableError(f"{reference!r} cannot be imported: {module_name!r} has no {name!r}.")
        thing = getattr(thing, part)
    return thing


def import_paths(references: Iterable[str] = ()) -> list[str]:
    """Return the folders that this process imports from, for another process on the same machine.

    They include the folders of the modules in `references`, even if these are no longer on `sys.path` (Dagster adds a
    working directory only while it loads).
    """
    modules = {reference.rpartition(":")[0].partition(".")[0] for reference in references}
    files = [getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules)]
    roots = [os.path.dirname(file.removesuffix("/__init__.py")) for file in files if file]
    return list(dict.fromkeys(os.path.abspath(path) for path in [*sys.path, *roots] if os.path.isdir(path or ".")))


def add_import_paths(paths: Sequence[str]) -> None:
    """Append `paths` to this process's import path, unless they are on it."""
    sys.path.extend(path for path in paths if path not in sys.path)


def _module_address(module: str) -> str:
    if module != "__main__":
        loaded = sys.modules.get(module)
        return getattr(loaded, "__marin_script__", module)
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return spec.name.removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    if not file:
        raise UnimportableError("A worker cannot import a function that was defined at a prompt. Put it into a file.")
    return os.path.abspath(file)


def _load_script(path: str) -> ModuleType:
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if main is not None and file and os.path.abspath(file) == path:
        return main
    name = "marin_script_" + "".join(c if c.isalnum() else "_" for c in path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).exists():
        raise UnimportableError(f"The script {path!r} does not exist, so its functions cannot be imported.")
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    module.__marin_script__ = path  # type: ignore[attr-defined]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # load it again the next time
        del sys.modules[name]
        raise
    return module
