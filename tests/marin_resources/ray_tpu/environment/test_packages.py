"""Packages beyond the extras: wheels that a test makes, from a folder that stands for the index."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from wheels import only_from, wheel

from marin_resources.ray_tpu.environment.packages import (
    PackagesError,
    ensure_installed,
    invalid_packages,
    missing_python_packages,
)
from marin_resources.ray_tpu.requirements import Requirements, describe_missing


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only packages that can be installed."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in only_from(folder, tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return folder


def names_in(folder: str | None) -> set[str]:
    assert folder is not None
    return {name for name in os.listdir(folder) if not name.startswith(".") and not name.endswith(".dist-info")}


def test_nothing_asked_for_is_nothing() -> None:
    assert ensure_installed(()) is None


def test_what_a_step_asks_for_is_there_with_what_that_needs(index: Path) -> None:
    wheel(index, "marin-tiny", "1.5", "marin-tinier>=2")
    wheel(index, "marin-tinier", "2.0")
    folder = ensure_installed(["marin-tiny>=1"])
    assert names_in(folder) == {"marin_tiny", "marin_tinier"}
    code = "import marin_tiny, marin_tinier; print(marin_tiny.version, marin_tinier.version)"
    env = {**os.environ, "PYTHONPATH": str(folder)}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout == "1.5 2.0\n"


def test_it_is_installed_once_for_the_same_requirements_in_any_order(index: Path) -> None:
    wheel(index, "marin-tiny", "1.0")
    wheel(index, "marin-other", "1.0")
    first = ensure_installed(["marin-tiny", "marin-other"])
    shutil.rmtree(index)
    assert ensure_installed(["marin-other", "marin-tiny"]) == first


def test_what_the_environment_has_is_not_installed_again(index: Path) -> None:
    """psutil is not in the index: the package uses that of the environment."""
    wheel(index, "marin-tiny", "1.0", "psutil>=5")
    assert names_in(ensure_installed(["marin-tiny", "psutil"])) == {"marin_tiny"}


def test_a_package_that_would_replace_what_the_environment_has_is_refused(index: Path) -> None:
    wheel(index, "marin-tiny", "1.0", "psutil<5")
    wheel(index, "psutil", "4.0")
    with pytest.raises(PackagesError, match=r"'marin-tiny' cannot be installed: .*psutil<5 and psutil==") as raised:
        ensure_installed(["marin-tiny"])
    assert "\n" not in str(raised.value)


def test_a_package_that_is_not_there_is_one_sentence_with_uvs_reason(index: Path) -> None:
    with pytest.raises(
        PackagesError, match=r"^The packages 'no-such-package>=3' cannot be installed: .*not found"
    ) as e:
        ensure_installed(["no-such-package>=3"])
    assert "\n" not in str(e.value)


def test_what_is_no_requirement_is_one_sentence(index: Path) -> None:
    with pytest.raises(PackagesError, match=r"'marin-tiny=>1' cannot be installed: .*no such comparison operator"):
        ensure_installed(["marin-tiny=>1"])


def test_a_try_that_failed_leaves_nothing_that_counts(index: Path) -> None:
    with pytest.raises(PackagesError):
        ensure_installed(["marin-tiny"])
    wheel(index, "marin-tiny", "1.0")
    assert names_in(ensure_installed(["marin-tiny"])) == {"marin_tiny"}


def test_steps_that_begin_at_once_install_once(index: Path) -> None:
    wheel(index, "marin-tiny", "1.0")
    folders: list[str | None] = []
    threads = [threading.Thread(target=lambda: folders.append(ensure_installed(["marin-tiny"]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 4
    assert len(set(folders)) == 1
    assert not list((index.parent / "cache").glob("*.tmp"))


def test_an_index_that_does_not_answer_is_one_sentence(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.delenv("UV_NO_INDEX")
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with pytest.raises(PackagesError, match=r"'marin-tiny' were not installed within 0\.5 s"):
            ensure_installed(["marin-tiny"], timeout_s=0.5)


def test_a_cache_that_cannot_be_written_is_one_sentence(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (index.parent / "file").write_text("")
    monkeypatch.setenv("MARIN_PACKAGES_DIR", str(index.parent / "file"))
    with pytest.raises(PackagesError, match=r"'marin-tiny' cannot be put into '.*file'"):
        ensure_installed(["marin-tiny"])


def test_a_machine_without_uv_says_so(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(index))
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(PackagesError, match="installed with uv, which this machine lacks"):
        ensure_installed(["marin-tiny"])


def test_packages_that_cannot_be_installed_are_known_before_and_nothing_is_installed_for_that(index: Path) -> None:
    wheel(index, "marin-tiny", "1.5")

    def step(name: str, *packages: str) -> Requirements:
        return Requirements(step=name, packages=packages)

    steps = [step("a", "marin-tiny>=1"), step("b", "marin-tiny>=2"), step("c", "marin-tinny"), step("d", "psutil<1")]
    missing_by_step = missing_python_packages([*steps, step("e", "marin-tinny"), step("f")])
    assert sorted(missing_by_step) == ["b", "c", "d", "e"]
    assert not (index.parent / "cache").exists() or not list((index.parent / "cache").iterdir())
    of_two = describe_missing(missing_by_step)[1]
    assert of_two.startswith(
        "Steps 'c' and 'e' need packages that this machine cannot install. The packages 'marin-tin"
    )
    shutil.rmtree(index)
    assert "a" in missing_python_packages(steps)
    index.mkdir()
    wheel(index, "marin-tiny", "1.5")
    ensure_installed(["marin-tiny>=1"])
    shutil.rmtree(index)
    assert "a" not in missing_python_packages(steps)


def test_what_is_no_requirement_is_known_without_an_index() -> None:
    assert invalid_packages(("lxml>=5", "./some.whl", "x @ https://h/x.whl")) == {}
    invalid = invalid_packages(("lxml", "lxml>>5", "x!"))
    assert sorted(invalid) == ["lxml>>5", "x!"]
    assert invalid["lxml>>5"].phrase.startswith("needs the package 'lxml>>5', which is no requirement. Expected a name")
