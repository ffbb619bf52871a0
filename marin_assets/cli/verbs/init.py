"""Make a project of your own in a new folder: an experiment, a schedule, and the settings that show both in the UI.

The folder has a package of its name with `experiments/` and `sensors/`. Commands that start in it use its settings.
"""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import os
import re
import tempfile
from pathlib import Path

from marin_assets.run.options import OptionError
from marin_assets.run.output import print_line

TEMPLATE = Path(__file__).parents[1] / "new_project"
PACKAGE = "package"
GENERATED = {"gitignore": ".gitignore"}
"""Name in the template -> in a project: a file of git's would hold for the template itself."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="a folder that does not exist, or is empty")


def run(options: argparse.Namespace) -> int:
    """Write the project beside its place and move it there, so that no half of one is left. Raises OptionError."""
    folder = Path(os.path.abspath(os.path.expanduser(options.folder)))
    _require_free(folder)
    project = folder.name
    package = re.sub(r"\W", "_", project.lower())
    if not re.fullmatch(r"[a-z][a-z0-9_]*", package) or keyword.iskeyword(package):
        raise OptionError(f"marin init: got {project!r}, expected a name that begins with a letter, such as my_lab.")
    if importlib.util.find_spec(package) is not None:
        raise OptionError(f"marin init: got {project!r}, and a package {package!r} exists. Choose another name.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{project}-") as made:
            _write(Path(made) / project, {"{{project}}": re.sub(r"[^\w-]", "-", project), "{{package}}": package})
            os.replace(Path(made) / project, folder)
    except OSError as error:
        raise OptionError(f"marin init: {str(folder)!r} cannot be written ({error.strerror}).") from None
    print_line(f"made: {folder}, with the package {package}. Next: cd {options.folder}; marin run first; marin dev")
    return 0


def _require_free(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if os.path.lexists(folder):
        raise OptionError(f"marin init: {str(folder)!r} exists, and is no empty folder. Name a new one.")


def _write(folder: Path, words: dict[str, str]) -> None:
    """Copy the template, with the project's names in the place of words in braces."""
    for file in sorted(TEMPLATE.rglob("*")):
        parts = [words["{{package}}"] if part == PACKAGE else part for part in file.relative_to(TEMPLATE).parts]
        if not file.is_file() or "__pycache__" in parts:
            continue
        text = file.read_text(encoding="utf-8")
        for word, name in words.items():
            text = text.replace(word, name)
        path = folder.joinpath(*parts[:-1], GENERATED.get(parts[-1], parts[-1]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
