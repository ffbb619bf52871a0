"""Engines, which compute a model's logits and text: our JAX model, Hugging Face's on torch, or vLLM.

torch and vLLM have environments of their own, since they want another transformers than Levanter. A step finds their
Python by a variable, else in a folder of the checkout:

    MARIN_TORCH_PYTHON      else .venv-torch/bin/python
    MARIN_VLLM_PYTHON       else .venv-vllm/bin/python, else this Python if it has vllm
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

from marin_assets.step.values import unwrap_versioned_value, versioned
from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import checkout
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

Kind = Literal["jax", "torch", "vllm"]
MODULES = {"torch": ("torch", "transformers"), "vllm": ("vllm",)}
"""Packages that the environment of an engine must have."""
IMPORT_TIMEOUT_S = 60.0


class EngineError(MarinError):
    """An engine is not available here, or has failed. The message names the remedy."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The program that runs a model, and its settings."""

    kind: Kind = versioned("vllm")
    dtype: str = versioned("float32")
    """Type of weights and activations."""
    max_length: int | None = versioned(None)
    """Tokens of context and answer together; the model's own window if None."""
    options: tuple[str, ...] = versioned(())
    """Further arguments of its server: ("--tensor-parallel-size", "4") is for vLLM."""
    ready_timeout_s: float = 900.0
    """Time limit for the start of a server, until it answers."""
    concurrency: int = 32
    """Requests that are sent to it at once."""


JAX, TORCH, VLLM = (Engine(kind=versioned(kind)) for kind in ("jax", "torch", "vllm"))


def check_engine(engine: Engine) -> None:
    """Raise EngineError if the engine is not available here: its Python does not exist, or lacks its packages."""
    python_of(engine)


def require_engine(engine: Any) -> None:
    """Raise EngineError unless `engine` is an Engine of a known kind; its name alone, for example, is not."""
    unwrapped = unwrap_versioned_value(engine)
    if not isinstance(unwrapped, Engine):
        raise EngineError(
            f"The engine is {unwrapped!r}, expected None, TORCH, VLLM or another Engine. Pass one of them."
        )
    if unwrapped.kind not in get_args(Kind):
        raise EngineError(
            f"The engine is of the kind {unwrapped.kind!r}, {expected_one_of(unwrapped.kind, get_args(Kind))}"
        )


def python_of(engine: Engine) -> str:
    """The Python of an engine's environment. Raises EngineError."""
    require_engine(engine)
    kind = engine.kind
    if kind == "jax":
        return sys.executable
    variable, folder = f"MARIN_{kind.upper()}_PYTHON", f".venv-{kind}"
    python = os.environ.get(variable)
    if not python:
        root = checkout()
        beside = root / folder / "bin/python" if root else None
        if beside is not None and beside.exists():
            python = str(beside)
        elif all(find_spec(name) for name in MODULES[kind]):
            return sys.executable
        else:
            raise EngineError(
                f"The engine {kind!r} needs an environment of its own, and there is none: {variable} is not set, and "
                f"{beside or folder} does not exist. {_how_to_make(kind, variable, folder)}"
            )
    if lacking := _lacking(python, MODULES[kind]):
        raise EngineError(
            f"The engine {kind!r} needs {', '.join(MODULES[kind])}, and {python!r} {lacking}. Set {variable} to the "
            f"Python of an environment with them. {_how_to_make(kind, variable, folder)}"
        )
    return python


def _how_to_make(kind: Kind, variable: str, folder: str) -> str:
    """A sentence with the command that makes the environment of the engine."""
    python, environment = os.path.abspath(folder), shlex.quote(folder)
    pip = f"{environment}/bin/pip install {' '.join(MODULES[kind])}"
    installed = f"{sys.executable} -m venv {environment} && {pip} && export {variable}={python}/bin/python"
    return f"Make one: {make_or(folder, installed)}"


def _lacking(python: str, modules: tuple[str, ...]) -> str:
    """The modules that `python` lacks, as the end of a sentence; empty if it has all. They are not imported."""
    script = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        process = subprocess.run(
            [python, "-c", script, *modules],
            capture_output=True,
            text=True,
            timeout=IMPORT_TIMEOUT_S,
            env=environment,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run ({error})"
    if process.returncode:
        return f"cannot be run ({process.stderr.strip()[-200:]})"
    return f"lacks {', '.join(process.stdout.split())}" if process.stdout.split() else ""


def executable(python: str) -> str:
    """The path of a Python, absolute but not resolved: a link in an environment is what makes it that environment's."""
    return str(Path(python).absolute()) if os.sep in python else python
