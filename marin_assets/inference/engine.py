"""Engines, which compute a model's logits and text: our JAX model, Hugging Face's on torch, or vLLM; or a server that
runs already, which has OpenAI's API.

torch and vLLM have environments of their own, since they want another transformers than Levanter. A step finds their
Python by a variable, else in a folder of the checkout:

    MARIN_TORCH_PYTHON      else .venv-torch/bin/python
    MARIN_VLLM_PYTHON       else .venv-vllm/bin/python, else this Python if it has vllm
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from marin_assets.inference.own_python import NoPythonError, own_python
from marin_assets.step.values import ensure_versioned, unwrap_versioned_value, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.job_allocation import current_allocation
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

E = TypeVar("E")
Kind = Literal["jax", "torch", "vllm"]
MODULES = {"torch": ("torch", "transformers"), "vllm": ("vllm",)}
"""Packages that the environment of an engine must have."""
NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
"""The form of the name of an environment variable; a key has other letters."""


class EngineError(MarinError):
    """An engine is not available here, or has failed. The message names the remedy."""


class RequestError(MarinError, ValueError):
    """A server refused a request: the model has no such window, or the request is wrong."""


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
    """Requests that are sent to a server at once."""
    servers: int = 1
    """Servers of the model, among which the requests are spread."""
    server_resources: Resources | None = None
    """Resources of each server, which is placed where the cluster has them; None: all on the step's machine, whose GPUs
    they share evenly. A step that is no job of a cluster starts them on its machine."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model behind the address of a running server with OpenAI's API: vLLM elsewhere, a gateway, a provider.

    What its server does is outside of the version: another quantization, a newer model of the same name.
    """

    url: str
    """The address of the API, such as "https://models.example/v1"."""
    model: str
    """As the server calls it; versioned(), which the default_* functions see to."""
    max_length: int | None = versioned(None)
    """Tokens of context and answer together; the window of the export if None. It is for tokens, not for texts."""
    key_variable: str | None = None
    """Name of the environment variable that has the key, where the server wants one."""
    concurrency: int = 16
    """Requests under way at once."""
    requests_per_minute: int | None = None
    """Most requests that are sent in a minute."""
    give_up_s: float = 1800.0
    """Time limit for the answer to a request, with all its tries."""

    kind: ClassVar[str] = "endpoint"


JAX, TORCH, VLLM = (Engine(kind=versioned(kind)) for kind in ("jax", "torch", "vllm"))


def check_engine(engine: Engine | Endpoint) -> None:
    """Raise EngineError if the engine is not available here: its Python does not exist, or lacks its packages. An
    endpoint gets no request; servers on other machines look themselves."""
    if isinstance(engine, Endpoint) or are_elsewhere(engine):
        require_engine(engine)
    else:
        python_of(engine)


def require_engine(engine: Any) -> None:
    """Raise EngineError unless `engine` is an Engine of a known kind, or an Endpoint whose values have a meaning; its
    name alone, for example, is not."""
    unwrapped = unwrap_versioned_value(engine)
    if isinstance(unwrapped, Endpoint):
        _check_endpoint(unwrapped)
        return
    if not isinstance(unwrapped, Engine):
        raise EngineError(
            f"The engine is {unwrapped!r}, expected None, TORCH, VLLM, another Engine or an Endpoint. Pass one of them."
        )
    if unwrapped.kind not in get_args(Kind):
        raise EngineError(
            f"The engine is of the kind {unwrapped.kind!r}, {expected_one_of(unwrapped.kind, get_args(Kind))}"
        )
    _check_servers(unwrapped)


def are_elsewhere(engine: Engine) -> bool:
    """Whether the cluster places the servers, each on a machine with their resources."""
    return engine.server_resources is not None and current_allocation() is not None


def reads_weights(engine: Engine | Endpoint | None) -> bool:
    """Whether the machine of the step needs the model's weights, and not its tokenizer alone."""
    return engine is None or not (isinstance(engine, Endpoint) or are_elsewhere(engine))


def _check_servers(engine: Engine) -> None:
    for name in ("servers", "concurrency"):
        number = getattr(engine, name)
        if type(number) is not int or number < 1:
            raise EngineError(f"The engine has {name}={number!r}, expected a whole number from 1.")
    resources = engine.server_resources
    if resources is not None and (not isinstance(resources, Resources) or resources.tpu):
        raise EngineError(
            f"The engine has server_resources={resources!r}, expected CPUs or GPUs of one machine, such as "
            "gpu('H100', 8). Pass cpu(…) or gpu(…)."
        )


def _check_endpoint(endpoint: Endpoint) -> None:
    try:
        address = urlsplit(endpoint.url)
        _ = address.port
    except (ValueError, AttributeError, TypeError):  # AttributeError: of a number
        address = urlsplit("")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise EngineError(
            f"Endpoint has url={endpoint.url!r}, expected the address of OpenAI's API, such as "
            "'https://models.example/v1'."
        )
    if address.username or address.password or address.query or address.fragment:
        raise EngineError(
            f"Endpoint has a url at {address.hostname!r} with a user, a password, a query or a fragment, expected the "
            "address alone: it is stored with the step. Pass a key by key_variable=…, the name of an environment "
            "variable."
        )
    if not isinstance(endpoint.model, str) or not endpoint.model.strip():
        raise EngineError(
            f"Endpoint has model={endpoint.model!r}, expected the name by which the server has the model."
        )
    if endpoint.key_variable is not None and not NAME.fullmatch(str(endpoint.key_variable)):
        raise EngineError(
            "Endpoint has a key_variable that no environment variable can be called, expected a name such as "
            "'GATEWAY_API_KEY'. Put the key into that variable, not here."
        )
    for name in ("concurrency", "requests_per_minute", "give_up_s", "max_length"):
        number = getattr(endpoint, name)
        if number is None and name in ("requests_per_minute", "max_length"):
            continue
        if type(number) not in ((int, float) if name == "give_up_s" else (int,)) or not 0 < number < math.inf:
            raise EngineError(f"Endpoint has {name}={number!r}, expected a number above 0.")


def in_version(engine: E) -> E:
    """The engine as a step has it: the name of an endpoint's model is in the version."""
    return replace(engine, model=ensure_versioned(engine.model)) if isinstance(engine, Endpoint) else engine


def key_variables(engine: Engine | Endpoint | None) -> tuple[str, ...]:
    """The environment variables that a step needs for the key of its endpoint."""
    variable = engine.key_variable if isinstance(engine, Endpoint) else None
    return () if variable is None else (variable,)


def python_of(engine: Engine) -> str:
    """The Python of an engine's environment. Raises EngineError."""
    require_engine(engine)
    if engine.kind == "jax":
        return sys.executable
    try:
        return own_python(f"The engine {engine.kind!r}", engine.kind, MODULES[engine.kind], or_this=True)
    except NoPythonError as error:
        raise EngineError(str(error)) from error
