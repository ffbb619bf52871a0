from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marin_resources.configuration.settings import project_root
from marin_resources.wire.reference import UnimportableError, add_import_paths, import_paths, load, reference_to


class Holder:
    class Inner:
        pass

    def method(self, config: Any) -> None:
        pass

    @classmethod
    def of_class(cls, config: Any) -> str:
        return cls.__name__

    @staticmethod
    def static(config: Any) -> None:
        pass


def function(config: Any) -> None:
    pass


@pytest.mark.parametrize("thing", [function, Holder, Holder.Inner, Holder.static, json.dumps, len])
def test_a_name_finds_what_it_was_made_from(thing: Any) -> None:
    assert load(reference_to(thing)) is thing


def test_a_class_method_is_found_on_its_class() -> None:
    assert load(reference_to(Holder.of_class))(None) == "Holder"


@pytest.mark.parametrize(
    "thing", [lambda c: c, Holder().method, functools.partial(function), Holder(), 3], ids=lambda t: type(t).__name__
)
def test_what_a_worker_could_not_import_is_refused(thing: Any) -> None:
    with pytest.raises(UnimportableError):
        reference_to(thing)


def test_a_closure_is_refused_with_where_to_move_it() -> None:
    def inner(config: Any) -> None:
        pass

    with pytest.raises(UnimportableError, match="Define it at the top level of a module or of the script"):
        reference_to(inner)


def test_a_missing_name_is_reported() -> None:
    with pytest.raises(UnimportableError, match="'json:no_such' cannot be imported: 'json' has no 'no_such'"):
        load("json:no_such")
    with pytest.raises(UnimportableError, match=r"The script '/no/such.py' does not exist"):
        load("/no/such.py:f")


SCRIPT = """
import beside
from marin_resources.wire.reference import reference_to
def work(config):
    return beside.VALUE
if __name__ == "__main__":
    print(reference_to(work))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    (tmp_path / "my script.py").write_text(SCRIPT)
    return tmp_path / "my script.py"


def test_a_function_of_a_script_is_named_by_its_file_and_found_in_another_process(script: Path) -> None:
    started = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, cwd="/")
    reference = started.stdout.strip()
    assert reference == f"{script}:work"
    found = subprocess.run(
        [sys.executable, "-c", f"from marin_resources.wire.reference import load; print(load({reference!r})(0))"],
        capture_output=True, text=True, check=True, cwd=project_root(),
    )  # fmt: skip
    assert found.stdout.strip() == "7"


def test_a_module_started_with_m_is_named_by_its_module(script: Path) -> None:
    script.rename(script.parent / "started.py")
    done = subprocess.run(
        [sys.executable, "-m", "started"], capture_output=True, text=True, check=True, cwd=script.parent
    )
    assert done.stdout.strip() == "started:work"


def test_a_script_is_loaded_once_and_keeps_its_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    work = load(f"{script}:work")
    assert work(None) == 7
    assert load(f"{script}:work") is work
    assert reference_to(work) == f"{script}:work"
    sys.modules.pop("beside", None)


def test_a_script_that_fails_is_not_half_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "broken.py").write_text("def f(c): pass\n1 / 0\n")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load(f"{tmp_path}/broken.py:f")


def test_another_process_imports_from_where_this_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("def f(c): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("package.inner")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path)])
    assert str(tmp_path) not in import_paths()
    assert str(tmp_path) in import_paths(["package.inner:f"])
    add_import_paths([str(tmp_path), str(tmp_path)])
    assert str(tmp_path) in sys.path
    for name in ("package", "package.inner"):
        sys.modules.pop(name)
