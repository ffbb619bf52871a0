"""Google's discovery documents: which method a request is, and whether its parameters and body are allowed.

As Google does, a field or parameter that a method does not have, or a value of another type, is refused with 400;
fields that are output alone are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fake_google.refusals import RefusalError

VERSIONS = {
    "compute": ("v1",),
    "tpu": ("v2", "v2alpha1"),
    "iam": ("v1",),
    "cloudresourcemanager": ("v1",),
    "secretmanager": ("v1",),
    "serviceusage": ("v1",),
    "storage": ("v1",),
    "artifactregistry": ("v1",),
}
COMMON = {"alt", "fields", "key", "prettyPrint", "quotaUser", "userIp", "uploadType", "upload_protocol", "callback"}
"""Parameters of every method. Google's names have a "$" before some of them."""


@dataclass(frozen=True)
class Method:
    """One method of an API, by its discovery document."""

    id: str
    """Without the version: "tpu.projects.locations.nodes.create"."""
    parameters: Mapping[str, Any]
    request: str | None
    schemas: Mapping[str, Any]

    def check(self, query: Mapping[str, str], body: Any) -> None:
        """Raise RefusalError for a parameter or a body that Google would not take."""
        for name, value in query.items():
            if name.removeprefix("$") not in COMMON:
                self._check_parameter(name, value)
        for name, each in self.parameters.items():
            if each.get("required") and each["location"] == "query" and name not in query:
                raise RefusalError(400, f"Required parameter: {name}")
        if self.request is None:
            if body not in (None, {}):
                raise RefusalError(400, "Invalid JSON payload received. Request has no body.")
        else:
            _check({"$ref": self.request}, body or {}, self.schemas, "")

    def _check_parameter(self, name: str, value: str) -> None:
        known = self.parameters.get(name)
        if known is None or known["location"] != "query":
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            raise RefusalError(400, message)
        if known["type"] == "integer" and not re.fullmatch(r"-?\d+", value):
            raise RefusalError(400, f"Invalid value at '{name}' (TYPE_INT32), \"{value}\"")
        if known["type"] == "boolean" and value.lower() not in ("true", "false"):
            raise RefusalError(400, f"Invalid value at '{name}' (TYPE_BOOL), \"{value}\"")


def document(api: str, version: str) -> dict[str, Any]:
    """A discovery document, of the installed google-api-python-client."""
    import googleapiclient

    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    found: dict[str, Any] = json.loads((folder / f"{api}.{version}.json").read_text())
    return found


def api_of(host: str, path: str) -> str:
    """The service of a request. Links of Compute Engine name the host of all."""
    return path.strip("/").partition("/")[0] if host == "www.googleapis.com" else host.partition(".")[0]


def find_method(host: str, verb: str, path: str) -> tuple[Method, dict[str, str]]:
    """The method of a request, and what its path names. Raises RefusalError."""
    api = api_of(host, path)
    if api in VERSIONS:
        for expression, found_verb, method in _methods(api):
            if found_verb == verb and (match := expression.fullmatch(path.strip("/"))):
                return method, match.groupdict()
    raise RefusalError(404, f"Not Found: {verb} https://{host}{path}")


@cache
def _methods(api: str) -> list[tuple[re.Pattern[str], str, Method]]:
    found: list[tuple[re.Pattern[str], str, Method]] = []
    for version in VERSIONS[api]:
        read = document(api, version)
        for method in _all_methods(read):
            expression = _expression(read["servicePath"] + (method.get("flatPath") or method["path"]))
            request = method.get("request", {}).get("$ref")
            found.append(
                (expression, method["httpMethod"], Method(method["id"], method["parameters"], request, read["schemas"]))
            )
    return found


def _all_methods(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = [{"parameters": {}, **method} for method in resource.get("methods", {}).values()]
    for each in resource.get("resources", {}).values():
        found += _all_methods(each)
    return found


def _expression(path: str) -> re.Pattern[str]:
    """The path's form: {name} is one part, and a verb after a colon belongs to none."""
    parts = re.split(r"\{([^}]+)\}", path)
    texts = [
        re.escape(part) if index % 2 == 0 else f"(?P<{part.lstrip('+')}>[^/:]+)" for index, part in enumerate(parts)
    ]
    return re.compile("".join(texts))


def _check(schema: Mapping[str, Any], value: Any, schemas: Mapping[str, Any], where: str) -> None:
    if "$ref" in schema:
        schema = schemas[schema["$ref"]]
    kind = schema.get("type")
    at = where or "the body"
    if kind == "object":
        if not isinstance(value, dict):
            raise RefusalError(400, f"Invalid value at '{at}' (expected an object): {value!r}")
        _check_object(schema, value, schemas, where)
    elif kind == "array":
        if not isinstance(value, list):
            raise RefusalError(400, f"Invalid value at '{at}' (expected a list): {value!r}")
        for index, each in enumerate(value):
            _check(schema["items"], each, schemas, f"{where}[{index}]")
    elif not _is_of_type(kind, schema.get("format"), value):
        raise RefusalError(400, f"Invalid value at '{at}' (TYPE_{str(kind).upper()}), {json.dumps(value)}")
    elif "enum" in schema and value not in schema["enum"]:
        raise RefusalError(400, f"Invalid value at '{at}' (TYPE_ENUM), {json.dumps(value)}")


def _check_object(schema: Mapping[str, Any], value: Mapping[str, Any], schemas: Mapping[str, Any], where: str) -> None:
    properties = schema.get("properties", {})
    for key, each in value.items():
        if key in properties:
            _check(properties[key], each, schemas, f"{where}.{key}".lstrip("."))
        elif "additionalProperties" in schema:
            _check(schema["additionalProperties"], each, schemas, f"{where}.{key}".lstrip("."))
        else:
            message = f"Invalid JSON payload received. Unknown name \"{key}\" at '{where}': Cannot find field."
            raise RefusalError(400, message)


def _is_of_type(kind: Any, form: Any, value: Any) -> bool:
    if kind == "any" or kind is None:
        return True
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("integer", "number"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if form in ("int64", "uint64"):  # as a text, or as a number that JSON can hold
        return isinstance(value, str | int) and re.fullmatch(r"-?\d+", str(value)) is not None
    return isinstance(value, str)
