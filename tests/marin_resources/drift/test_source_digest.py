"""The source that a function depends on: its modules, and the changes of them that count."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from marin_resources.drift.source_digest import read_source, source_now

MAIN = "import helper\n\ndef work(config):\n    return helper.double(config)\n"
HELPER = "def double(x):\n    return 2 * x\n"


def write(folder: Path, **files: str) -> str:
    """Write `a__b="…"` to a/b.py; the reference of the function in main.py."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return f"{folder}/main.py:work"


def source(reference: str, *others: str) -> dict[str, Any]:
    found = read_source([reference, *others], lambda module: True)
    assert found is not None
    return found


def modules(reference: str) -> list[str]:
    return list(source(reference)["modules"])


def test_the_source_is_the_functions_module_and_its_imports_also_inside_functions(tmp_path: Path) -> None:
    reference = write(
        tmp_path,
        main="import json\nimport dagster\nimport helper\ndef work(config): pass\n",
        helper="def later():\n    try:\n        from package import part\n    finally:\n        import last as other\n",
        package__part="from package.other import thing\n",
        package__other="thing = 1\n",
        last="",
        never="",
    )
    assert modules(reference) == ["helper", "last", "main", "package.other", "package.part"]


def test_a_package_counts_with_its_init_and_relative_imports_are_followed(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .first import one\n")
    write(package, first="from . import second\none = 1\n", second="from .deep.third import x\n", deep__third="x = 1")
    (package / "deep" / "__init__.py").write_text("")
    reference = write(tmp_path, main="from package import first\n")
    assert modules(reference) == [
        "main",
        "package",
        "package.deep",
        "package.deep.third",
        "package.first",
        "package.second",
    ]


def test_modules_that_import_each_other_are_each_read_once(tmp_path: Path) -> None:
    reference = write(tmp_path, main="import a\n", a="import b\n", b="import a, main\n")
    assert modules(reference) == ["a", "b", "main"]


def test_modules_are_found_without_importing_them(tmp_path: Path) -> None:
    reference = write(tmp_path, main="import dangerous\n", dangerous="raise SystemExit('imported')\n")
    assert modules(reference) == ["dangerous", "main"]


def test_imports_for_types_alone_do_not_count(tmp_path: Path) -> None:
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    assert modules(write(tmp_path, main=guarded, a="", b="")) == ["b", "main"]


def test_comments_docstrings_and_layout_change_nothing(tmp_path: Path) -> None:
    before = source(write(tmp_path, main=MAIN, helper="x = 1\n" + HELPER))
    told = (
        '"""Doubles."""\n\nx = 1\n"""One."""\n\n\ndef double(x):  # twice\n    """2x."""\n\n    return (2\n      * x)\n'
    )
    after = source(write(tmp_path, main=MAIN, helper=told))
    assert after["modules"] == before["modules"]
    assert after["digest"] == before["digest"]


@pytest.mark.parametrize(
    "changed",
    [
        "def double(x):\n    return 3 * x\n",
        "def double(x):\n    return x * 2\n",
        "def double(x, y=None):\n    return 2 * x\n",
        "def double(x):\n    return 2.0 * x\n",
        "def double(x):\n    return '2' * x\n",
        "def double(x):\n    x = '2'\n    return 2 * x\n",
    ],
)
def test_what_the_code_does_changes_the_digest_of_its_module_alone(tmp_path: Path, changed: str) -> None:
    before = source(write(tmp_path, main=MAIN, helper=HELPER))["modules"]
    after = source(write(tmp_path, main=MAIN, helper=changed))["modules"]
    assert after["main"] == before["main"]
    assert after["helper"] != before["helper"]


def test_a_file_in_the_middle_of_an_edit_is_its_bytes(tmp_path: Path) -> None:
    reference = write(tmp_path, main=MAIN, helper="def double(x:\n")
    broken = source(reference)["modules"]["helper"]
    write(tmp_path, helper="def double(x::\n")
    assert source(reference)["modules"]["helper"] != broken


def test_an_odd_string_in_a_source_causes_no_warning(tmp_path: Path) -> None:
    assert modules(write(tmp_path, main="x = '\\d'\nimport helper\n", helper="")) == ["helper", "main"]


def test_unchanged_files_return_the_recorded_source_without_reading_their_imports(tmp_path: Path) -> None:
    reference = write(tmp_path, main=MAIN, helper=HELPER)
    recorded = source(reference)
    os.utime(tmp_path / "helper.py", (1, 1))
    assert source_now([reference], lambda module: True, recorded) is recorded


def test_a_changed_and_a_removed_file_are_seen_although_they_were_read_before(tmp_path: Path) -> None:
    reference = write(tmp_path, main=MAIN, helper=HELPER)
    recorded = source(reference)
    write(tmp_path, helper=HELPER + "y = 1\n")
    now = source_now([reference], lambda module: True, recorded)
    assert now is not None
    assert now["modules"]["helper"] != recorded["modules"]["helper"]
    (tmp_path / "helper.py").unlink()
    now = source_now([reference], lambda module: True, recorded)
    assert now is not None
    assert list(now["modules"]) == ["main"]


def test_a_record_that_holds_more_of_the_source_is_compared_by_module(tmp_path: Path) -> None:
    reference = write(tmp_path, main=MAIN, helper=HELPER)
    recorded = {**source(reference), "used": {"main": "computed in another way"}, "used_format": 1}
    assert source_now([reference], lambda module: True, recorded) is recorded
    write(tmp_path, helper=f"# a comment\n{HELPER}")
    now = source_now([reference], lambda module: True, recorded)
    assert now is not None
    assert now["modules"] == recorded["modules"]


def test_many_steps_of_one_function_are_read_once(tmp_path: Path) -> None:
    reference = write(tmp_path, main=MAIN, helper=HELPER)
    first = read_source([reference], bool)
    assert first is not None
    assert read_source([reference], bool) is first


def test_another_function_of_the_same_file_is_another_source(tmp_path: Path) -> None:
    recorded = source(write(tmp_path, main=MAIN, helper=HELPER))
    now = source_now([f"{tmp_path}/main.py:other"], lambda module: True, recorded)
    assert now is not None
    assert (recorded["function"], now["function"]) == ("main:work", "main:other")


def test_a_config_class_of_another_module_counts_with_what_it_imports(tmp_path: Path) -> None:
    reference = write(tmp_path, main="", model="import layers\nclass Model: pass\n", layers="")
    found = source(reference, f"{tmp_path}/model.py:Model", "builtins:int")
    assert list(found["modules"]) == ["layers", "main", "model"]


def test_a_module_and_the_same_file_started_as_a_script_have_one_source() -> None:
    from marin_assets.experiments import two_steps

    as_module = source("marin_assets.experiments.two_steps:make_numbers")
    assert source(f"{two_steps.__file__}:make_numbers") == as_module
    assert as_module["function"] == "marin_assets.experiments.two_steps:make_numbers"


def test_source_folders_of_one_checkout_belong_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout/.git").mkdir(parents=True)
    lib, elsewhere = tmp_path / "checkout/lib", tmp_path / "elsewhere"
    write(lib, ours="import foreign\n")
    write(elsewhere, foreign="")
    for folder in (lib, elsewhere):
        monkeypatch.syspath_prepend(str(folder))
    assert modules(write(tmp_path / "checkout/src", main="import ours\n")) == ["main", "ours"]


def test_an_installed_function_depends_on_its_own_package() -> None:
    import packaging.version

    tops = {name.partition(".")[0] for name in modules(f"{packaging.version.__name__}:parse")}
    assert tops == {"packaging"}


def test_what_c_defines_has_no_source() -> None:
    assert read_source(["builtins:len"], lambda module: True) is None


def test_only_what_counts_is_followed(tmp_path: Path) -> None:
    reference = write(tmp_path, main="import a\nimport b\n", a="import below_a\n", below_a="", b="")
    found = read_source([reference], lambda module: module.name != "a")
    assert found is not None
    assert list(found["modules"]) == ["b", "main"]


STARTED = """
import sys
from marin_resources.wire.reference import reference_to
from marin_resources.drift.source_digest import read_source
import beside

def work(config): pass

if __name__ == "__main__":
    print(reference_to(work), *read_source([reference_to(work)], lambda module: True)["modules"])
"""


@pytest.mark.parametrize("words", [["package/started.py"], ["-m", "package.started"]])
def test_a_script_that_was_started_finds_its_own_file(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, package__started=STARTED, package__beside="", beside="")
    (tmp_path / "package/__init__.py").write_text("")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), str(tmp_path)])}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    _, *found = done.stdout.split()
    assert {"beside", "package", "package.started", "marin_resources.drift.source_digest"} <= set(found)


def test_the_quickstarts_steps_are_compared_in_a_fifth_of_a_second() -> None:
    from marin_assets.experiments.quickstart import steps
    from marin_assets.plan.record_facts.facts import counts
    from marin_assets.step.graph import build_graph
    from marin_resources.wire.reference import reference_to

    references = [[reference_to(node.step.fn)] for node in build_graph(steps())]
    recorded = [read_source(names, counts) or {} for names in references]
    seconds = []
    for _ in range(3):
        began = time.thread_time()
        now = [source_now(names, counts, found) for names, found in zip(references, recorded, strict=True)]
        seconds.append(time.thread_time() - began)
        assert all(one is other for one, other in zip(now, recorded, strict=True))
    assert min(seconds) < 0.2


def test_a_thread_that_parses_meanwhile_does_not_disturb(tmp_path: Path) -> None:
    """Python 3.11 raises SystemError if something parses while it builds a syntax tree: here the garbage collector."""
    undisturbed = write(tmp_path / "first", main="def work(c):\n" + "    x = (1, [c], {'a': c.b(c)})\n" * 100)
    reference = write(tmp_path / "second", main=Path(undisturbed.partition(":")[0]).read_text())
    left = [1]

    def parse_once(phase: str, _: object) -> None:
        if phase == "start" and left and sys._getframe(1).f_code is ast.parse.__code__:
            left.pop()
            ast.parse("x = 1")

    thresholds = gc.get_threshold()
    gc.callbacks.append(parse_once)
    gc.set_threshold(20)
    try:
        disturbed = source(reference)
    finally:
        gc.callbacks.remove(parse_once)
        gc.set_threshold(*thresholds)
    assert not left
    assert disturbed["modules"] == source(undisturbed)["modules"]
