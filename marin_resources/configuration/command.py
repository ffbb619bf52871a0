"""A command that works where this is printed: that of the Makefile in a checkout, another for an installed wheel."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from marin_resources.configuration.settings import checkout


def make_or(target: str, installed: str) -> str:
    """`make TARGET` in the checkout's folder, `make -C CHECKOUT TARGET` elsewhere; `installed` without a checkout.

    `target`: a target of the Makefile, with its variables: "dev PORT=3001". `installed`: a whole command.
    """
    root = checkout()
    if root is None:
        return installed
    folder = "" if Path.cwd() == root else f"-C {shlex.quote(os.path.relpath(root) if _is_near(root) else str(root))} "
    return f"make {folder}{target}"


def _is_near(root: Path) -> bool:
    """Whether the checkout is above the current folder, so that a short relative path names it."""
    return Path.cwd().is_relative_to(root)
