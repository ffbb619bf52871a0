"""A function or class by name: "package.module:name", or "/path/to/script.py:name" for a script that was started.

A worker imports what the name says. A script is imported from its file under a name of its own, with its
folder on the path, so that what stands beside it is found as it was when it was started.
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


class UnimportableError(ValueError):
    """Something that a worker could not import by name."""


def reference_to(thing: Any) -> str:
    """The name of a function or class. Raises UnimportableError for a lambda, a closure or a method of an instance."""
    name = getattr(thing, "__qualname__", None)
    module = getattr(thing, "__module__", None)
    owner = getattr(thing, "__self__", None)  # a module for what C defines, the class for a class method
    if not name or not module or not (owner is None or isinstance(owner, type | ModuleType)):
        raise UnimportableError(f"{thing!r} has no name to import it by. Use a function defined in a module.")
    if "<" in name:
        raise UnimportableError(
            f"{name!r} in {module!r} is a lambda or was defined inside a function, so a worker cannot import it. "
            "Define it at the top level of a module or of the script."
        )
    return f"{_module_address(module)}:{name}"


def load(reference: str) -> Any:
    """What `reference_to` named. Raises UnimportableError with what is missing."""
    module_name, _, name = reference.rpartition(":")
    module = _load_script(module_name) if module_name.endswith(".py") else importlib.import_module(module_name)
    thing: Any = module
    for part in name.split("."):
        if not hasattr(thing, part):
            raise UnimportableError(f"{reference!r} cannot be imported: {module_name!r} has no {name!r}.")
        thing = getattr(thing, part)
    return thing


def import_paths(references: Iterable[str] = ()) -> list[str]:
    """The folders that this process imports from, for another on the same machine to import from too.

    Those of the modules that `references` name are among them, also if they are on `sys.path` no longer (Dagster puts
    a working directory there only while it loads).
    """
    modules = {reference.rpartition(":")[0].partition(".")[0] for reference in references}
    files = [getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules)]
    roots = [os.path.dirname(file.removesuffix("/__init__.py")) for file in files if file]
    return list(dict.fromkeys(os.path.abspath(path) for path in [*sys.path, *roots] if os.path.isdir(path or ".")))


def add_import_paths(paths: Sequence[str]) -> None:
    """Import from `paths` as well, after what this process imports from already."""
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
        raise UnimportableError("A function typed at a prompt cannot be imported by a worker. Put it into a file.")
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
        raise UnimportableError(f"The script {path!r} is not there, so its functions cannot be imported.")
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    module.__marin_script__ = path  # type: ignore[attr-defined]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # a script that did not load must be loaded anew the next time
        del sys.modules[name]
        raise
    return module
