"""Private names of Ray are in `marin_resources/ray_tpu/ray_internals.py` alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from running import ROOT

FILE = ROOT / "marin_resources/ray_tpu/ray_internals.py"
PRODUCT = [
    file for package in ("marin_assets", "marin_resources", "marin_sensors") for file in ROOT.glob(f"{package}/**/*.py")
]
MODULES = re.compile(r"^ray\.((\w+\.)*_|autoscaler\b|core\b|dashboard\b|experimental\b|scripts\b)")
"""Modules that Ray's reference does not have."""
NAMES = re.compile(
    r"^(_private|_raylet|_internal_kv_\w+|internal_kv|global_worker|gcs_client|autoscaler_pb2|GlobalState)$"
)
TEXT = re.compile(r"\bray\.(_|experimental|core\.generated|scripts)|\b_?internal_kv|\bglobal_worker\b|autoscaler_pb2")
"""In the text of a program for another process."""


def private_names(source: str) -> Iterator[str]:
    """The private names of Ray that a file uses, also within functions and in the text of programs."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                name for each in node.names if MODULES.match(name := f"{node.module}.{each.name}") and node.level == 0
            )
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if MODULES.match(each.name))
        elif isinstance(node, ast.Attribute) and (NAMES.match(node.attr) or _is_private_of_ray(node)):
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "init":
            yield from (each.arg for each in node.keywords if each.arg and each.arg.startswith("_"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from (found.group() for found in TEXT.finditer(node.value))


def _is_private_of_ray(node: ast.Attribute) -> bool:
    value = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    return node.attr.startswith("_") and isinstance(value, ast.Name) and value.id == "ray"


def test_no_other_file_uses_one() -> None:
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in PRODUCT if file != FILE}
    of_ray = {file: list(private_names(text)) for file, text in texts.items() if re.search(r"\bray\b", text)}
    assert {file: names for file, names in of_ray.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from ray._private import worker", ["ray._private.worker"]),
        ("def f():\n    from ray.experimental import internal_kv", ["ray.experimental.internal_kv"]),
        ("import ray._raylet", ["ray._raylet"]),
        ("from ray import _raylet", ["ray._raylet"]),
        ("ray.init(address='auto', _temp_dir='/tmp')", ["_temp_dir"]),
        ("node = ray._private.worker.global_worker.node", ["global_worker", "_private"]),
        ("CODE = 'import ray; ray._private.services'", ["ray._"]),
        ('"""Replaces ray._private.worker."""', []),
        ("import ray\nray.init()", []),
        ("from ray.exceptions import RayError", []),
        ("from ray.util.placement_group import placement_group", []),
    ],
)
def test_a_private_name_is_found(text: str, expected: list[str]) -> None:
    assert list(private_names(text)) == expected


def test_each_function_names_its_issue_or_that_none_was_found() -> None:
    tree = ast.parse(FILE.read_text())
    assert re.search(r"Ray \d+\.\d+\.\d+", ast.get_docstring(tree) or ""), "the version of Ray"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and list(private_names(ast.unparse(node))) and node.name[:1] != "_":
            text = ast.get_docstring(node) or ""
            is_named = node.name.startswith("kv_") or re.search(r"ray-project/ray#\d+|[Nn]o issue", text)
            assert is_named, f"the issue of {node.name}, or that none was found"
