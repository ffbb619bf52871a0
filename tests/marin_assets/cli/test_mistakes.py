"""The mistakes of somebody's first scripts: one sentence each, and nothing else happens."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import ROOT

SCRIPT = """
import os, signal
from dataclasses import dataclass
from marin_assets import Step, THIS_OUTPUT_PATH, executor_main, gpu

@dataclass(frozen=True)
class Config:
    output_path: str = THIS_OUTPUT_PATH

def make(config):
    open(f"{config.output_path}/a.txt", "w").close()

class Interrupted(list):
    def __iter__(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for a background process
        os.kill(os.getpid(), signal.SIGINT)
        return super().__iter__()

step = Step(name="raw/a", fn=make, config=Config())
"""
GUARDED = 'if __name__ == "__main__":\n    '


@pytest.fixture
def run_script(tmp_path: Path, prefix: Path, dagster_home: Path) -> Callable[..., tuple[int, str]]:
    """Run a script that ends with this line; return the exit code and stderr."""

    def run(line: str, *options: str, module: bool = False, **environ: str) -> tuple[int, str]:
        (tmp_path / "my_experiment.py").write_text(SCRIPT + line)
        how = ["-c", "import my_experiment"] if module else ["my_experiment.py"]
        ended = subprocess.run(
            [sys.executable, *how, *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=480,
        )
        return ended.returncode, ended.stderr

    return run


@pytest.mark.parametrize(
    ("call", "code", "sentence"),
    [
        ("executor_main(step)", 2, "executor_main got the step 'raw/a', expected a list of steps. Write [step]."),
        ("executor_main([])", 2, "executor_main got an empty list, expected at least one step."),
        ("executor_main(None)", 2, "executor_main got None, expected a list of steps."),
        ("executor_main('raw/a')", 2, "executor_main got 'raw/a', expected a list of steps."),
        (
            "executor_main(Interrupted([step]))",
            130,
            "Stopped by Ctrl-C. Complete outputs stay; run again to continue.",
        ),
    ],
)
def test_a_wrong_call_is_one_sentence(
    run_script: Callable[..., tuple[int, str]], tmp_path: Path, prefix: Path, call: str, code: int, sentence: str
) -> None:
    ended, err = run_script(GUARDED + call)
    line = f"{tmp_path / 'my_experiment.py'}:{len((SCRIPT + GUARDED).splitlines())}: "
    assert (ended, err) == (code, f"{line if code == 2 else ''}{sentence}\n")
    assert not prefix.exists()


def test_ctrl_c_while_a_script_imports_is_one_line(tmp_path: Path) -> None:
    """Sent by the script itself, at a moment between the import of marin_assets and the call of executor_main."""
    script = tmp_path / "my_experiment.py"
    script.write_text(
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import marin_assets\nsignal.raise_signal(signal.SIGINT)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "Stopped by Ctrl-C.\n")
    script.write_text("import marin_assets\nraise ValueError('mine')\n")
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ended.stderr.startswith("Traceback (most recent call last):")


MISTAKEN = """from dataclasses import dataclass
from functools import partial

import ray

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, output_path_of, versioned


@dataclass(frozen=True, kw_only=True)
class Config:
    count: int = versioned(1)
    share: float | None = None
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class Other:
    output_path: str = THIS_OUTPUT_PATH


def make(config: Config) -> None: ...
def make_more(config: Config, more: int) -> None: ...
def make_nothing() -> None: ...
def from_any(path, config): ...


step = Step(name="raw/a", fn=make, config=Config(share=1))
wrong = {}
executor_main([wrong])
"""


def elsewhere_in_one_process(*cases: tuple[str, str]) -> list[Any]:
    """Cases that `test_a_hundred_mistakes.py` has without a process for each: here they are long."""
    return [pytest.param(*case, marks=pytest.mark.long) for case in cases]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            "Step(name='raw/b', fn=make_more, config=Config())",
            "has the function make_more(config: __main__.Config, more",
        ),
        *elsewhere_in_one_process(
            (
                "Step(name='raw/b', fn=lambda config: None, config=Config())",
                "Step 'raw/b' has a lambda, which no worker can",
            ),
            (
                "Step(name='raw/b', fn=partial(make_more, more=1), config=Config())",
                "Step 'raw/b' has a partial of make_more,",
            ),
            (
                "Step(name='raw/b', fn=ray.remote(make), config=Config())",
                "Step 'raw/b' has a remote function of Ray, expected",
            ),
            (
                "Step(name='raw/b', fn=make_nothing, config=Config())",
                "has the function make_nothing() -> None, expected one",
            ),
            (
                "Step(name='raw/b', fn=make(Config()), config=Config())",
                "Step 'raw/b' has fn=None, expected a function that",
            ),
            (
                "Step(name='raw/b', fn=make, config=Other())",
                "has a config of Other, and its function make takes Config. Pass",
            ),
            (
                "Step(name='raw/b', fn=make, config=Config)",
                "Step 'raw/b' has config=<class '__main__.Config'>, expected an",
            ),
            (
                "Step(name='raw/b', fn=make, config=Config(count='5'))",
                "config.count is '5', a str, expected int, as its annot",
            ),
            (
                "Step(name='raw/b', fn=make, config=Config(count=versioned(.5)))",
                "config.count is 0.5, a float, expected int,",
            ),
            (
                "Step(name='raw/b', fn=make, config=Config(share='x'))",
                "config.share is 'x', a str, expected float | None, as",
            ),
            (
                "Step(name='raw/' + 'b' * 300, fn=make, config=Config())",
                "is 300 bytes long, expected at most 200: a folder's",
            ),
            (
                "Step(name='raw/b', fn=make, config=Config(output_path=f'{step}/x'))",
                "Step('raw/a') is formatted into a text",
            ),
        ),
    ],
)
def test_a_step_that_cannot_be_is_its_line_and_one_sentence(tmp_path: Path, wrong: str, sentence: str) -> None:
    script = tmp_path / "my_experiment.py"
    script.write_text(MISTAKEN.format(wrong))
    ended = subprocess.run(
        [sys.executable, str(script), "--dry-run"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    line = MISTAKEN.splitlines().index("wrong = {}") + 1
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{script}:{line}: ")
    assert sentence in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_script_without_a_guard_runs_nothing_when_it_is_imported(
    run_script: Callable[..., tuple[int, str]], prefix: Path
) -> None:
    code, err = run_script("executor_main([step])", module=True)
    assert code == 1
    assert "my_experiment.py' calls executor_main while it is imported, as a worker does" in err.splitlines()[-1]
    assert err.endswith('Put the call below the line: if __name__ == "__main__":\n')
    assert not prefix.exists()


@pytest.mark.long
def test_a_script_without_a_guard_is_told_so_by_its_first_step(run_script: Callable[..., tuple[int, str]]) -> None:
    code, err = run_script("executor_main([step])")
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("Step 'raw/a' failed: UnimportableError: '")
    assert 'Put the call below the line: if __name__ == "__main__":' in last


def test_what_a_step_lacks_is_in_the_plan_and_ends_the_run_before_it_begins(
    run_script: Callable[..., tuple[int, str]], prefix: Path
) -> None:
    steps = "[step, Step(name='raw/b', fn=make, config=Config(), env=('NO_SUCH_TOKEN',))]"
    code, err = run_script(f"{GUARDED}executor_main({steps})", "--dry-run")
    assert (code, err.splitlines()[1:]) == (1, [])
    assert err.startswith(f"No output is stored below the prefix {str(prefix)!r} yet. ")
    code, err = run_script(f"{GUARDED}executor_main({steps})")
    assert code == 1
    assert "\n0 computed, 0 reused, 1 failed\n" in err
    sentence = (
        "Step 'raw/b' requires the variable 'NO_SUCH_TOKEN', which is not set. Export it.\nNothing was computed.\n"
    )
    assert err.endswith(sentence)
    assert not list(prefix.glob("raw/*"))


def test_dagsters_home_that_is_a_file_is_one_sentence(
    run_script: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    code, err = run_script(f"{GUARDED}executor_main([step])", DAGSTER_HOME=__file__)
    assert (code, err) == (2, f"DAGSTER_HOME is {__file__!r}, and there is a file. Set it to a folder.\n")


def test_a_port_that_is_taken_is_named_with_one_that_is_free(marin: Callable[..., tuple[int, str, str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = marin("dev", "--port", str(port))
    assert code == 2
    assert err.startswith(f"marin dev: port {port} is taken, maybe by another `make dev`. Stop that one, or choose ")
    assert "make dev PORT=" in err
    code, _, err = marin("dev", "--port", "70000")
    assert (code, "got '70000', expected a number from 1 to 65535" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Python 3.11 or 3.12 is required, and none is on PATH."),
        (["PYTHON=/nowhere/python3"], "Python 3.11 or 3.12 is required, and PYTHON=/nowhere/python3 cannot be run."),
    ],
)
def test_make_without_a_python_says_which_it_needs(tmp_path: Path, words: list[str], says: str) -> None:
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    make = shutil.which("make")
    assert make is not None
    ended = subprocess.run(
        [make, "init", *words], cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert f"*** {says} Install one, or name it: make init PYTHON=/path/to/python3.11." in line
    assert not (tmp_path / ".tools").exists()


@pytest.mark.parametrize("target", ["quickstart", "test"])
@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("python3.13", ["PYTHON=python3.13"], "PYTHON=python3.13 is Python 3.13.1."),
        ("python3", [], "none is on PATH (python3 is Python 3.13.1)."),
    ],
)
def test_make_with_a_python_that_is_not_supported_names_its_version(
    tmp_path: Path, name: str, words: list[str], says: str, target: str
) -> None:
    for file in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / file, tmp_path)
    (tmp_path / name).write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.version_info = (3, 13, 1); exec(sys.argv[2])' \"$@\"\n"
    )
    (tmp_path / name).chmod(0o755)
    make, environ = shutil.which("make"), {"PATH": str(tmp_path)}
    assert make is not None
    ended = subprocess.run(
        [make, target, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert f"*** Python 3.11 or 3.12 is required, and {says} Install one, or name it: make {target} PYTHON=" in line


@pytest.mark.parametrize("module", ["marin_assets", "marin_assets.cli.main", "marin_resources.storage.files"])
@pytest.mark.parametrize(("version", "is_refused"), [((3, 10, 2), True), ((3, 13, 0), True), ((3, 12, 9), False)])
def test_an_import_under_a_python_that_is_not_supported_is_one_sentence(
    module: str, version: tuple[int, ...], *, is_refused: bool
) -> None:
    code = f"import sys; sys.version_info = {version}; import {module}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    shown = ".".join(map(str, version))
    sentence = f"ImportError: Marin requires Python 3.11 or 3.12, and {sys.executable} is Python {shown}. Start "
    assert (sentence in ended.stderr) is is_refused, ended.stderr


def test_the_supported_pythons_are_those_of_the_distribution() -> None:
    """For pip, which refuses others by itself: they are named in the Makefile and where Marin is imported, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11,<3.13"


def test_make_installs_with_the_certificates_of_the_system(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    told = tmp_path / "uv"
    told.write_text('#!/bin/sh\nmkdir -p .venv; echo "uv: $UV_SYSTEM_CERTS; pip: $PIP_CERT" >&2\n')
    told.chmod(0o755)
    environ = {"PATH": os.environ["PATH"]}
    ended = subprocess.run(
        ["make", "init", f"UV={told}"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")  # of Debian
    assert f"uv: true; pip: {bundle if bundle.exists() else ''}" in ended.stderr
