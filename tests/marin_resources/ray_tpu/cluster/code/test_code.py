"""The code of a job: which files are shipped and when, and which code is rejected."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from ray_cluster import Cluster

from marin_resources.configuration.settings import project_root
from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi, JobStatus, connect
from marin_resources.ray_tpu.cluster.code.code import Code, ship
from marin_resources.ray_tpu.cluster.code.package import MAX_BYTES, CodeError, package_of
from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A working directory with a module, a script and files that must not be shipped."""
    folder = tmp_path / "project"
    for name, text in {
        "colour.py": f"print('the colour is', 'green')  # {tmp_path}",
        "scripts/paint.py": "def paint(): ...",
        "notes/secret.txt": "no",
        "notes/kept.txt": "yes",
        ".gitignore": "notes/*\n!notes/kept.txt\n",
        ".git/config": "no",
        ".venv/bin/python": "no",
        ".tools/uv": "no",
        ".env": "TOKEN=no",
        ".env.local": "TOKEN=no",
        "outputs/big/data.txt": "no",
        "deep/outputs/kept.py": "yes",
        ".dagster/history.db": "no",
        "deep/__pycache__/kept.cpython-311.pyc": "no",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@asynccontextmanager
async def api_of(settings: ClusterSettings) -> AsyncIterator[JobsApi]:
    async with connect(settings) as api:
        yield api


def shipped(cluster: Cluster, root: Path, references: Iterable[str] = ()) -> Code:
    return asyncio.run(_shipped(settings_of(cluster, root), references))


def settings_of(cluster: Cluster, root: Path, **others: object) -> ClusterSettings:
    return dataclasses.replace(cluster.settings(code=CodeMode.SHIP), working_dir=str(root), **others)


async def _shipped(settings: ClusterSettings, references: Iterable[str]) -> Code:
    async with api_of(settings) as api:
        return await ship(settings, api, references, f"{settings.working_dir}-prefix")


def test_a_job_runs_the_code_that_was_shipped(cluster: Cluster, root: Path) -> None:
    async def run() -> tuple[JobStatus, str]:
        async with api_of(settings_of(cluster, root)) as api:
            code = await ship(settings_of(cluster, root), api, (), f"{root}-prefix")
            (root / "colour.py").write_text("raise SystemExit('edited')")
            command = code.command(sys.executable, "colour")
            await api.submit(
                submission_id="a-shipped-one",
                entrypoint=command,
                runtime_env=code.runtime_env(),
                metadata={},
                num_cpus=0.1,
                memory_bytes=None,
            )
            while not (info := await api.info("a-shipped-one")).status.is_terminal:
                await asyncio.sleep(0.1)
            return info.status, await api.logs("a-shipped-one")

    status, log = asyncio.run(run())
    assert status is JobStatus.SUCCEEDED, log
    assert "the colour is green\n" in log


def test_what_ignore_files_name_and_what_runs_leave_behind_is_not_shipped(root: Path) -> None:
    assert package_of(str(root)).files == {
        "colour.py",
        "scripts/paint.py",
        "notes/kept.txt",
        ".gitignore",
        "deep/outputs/kept.py",
    }


def test_ignore_files_of_subfolders_apply_below_them_and_patterns_are_gits(root: Path) -> None:
    for name in ("deep/.rayignore", "deep/below/data.bin", "deep/below/build/x", "data.bin", ".hidden", "build/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("build/\ndata.bin\n")
    (root / ".gitignore").write_text("notes\n.h*\n")
    (root / "deep" / "loop").symlink_to(root, target_is_directory=True)
    (root / "linked.py").symlink_to(root / "colour.py")
    (root / "gone.py").symlink_to(root / "nowhere")
    (root / "empty").mkdir()
    package = package_of(str(root))
    assert package.files == {
        *("colour.py", "linked.py", "scripts/paint.py", ".gitignore", "deep/outputs/kept.py", "deep/.rayignore"),
        *("data.bin", "build/x"),
    }
    with zipfile.ZipFile(io.BytesIO(package.data)) as zipped:
        assert zipped.namelist() == sorted([*package.files, "empty/"])
        assert zipped.read("linked.py") == (root / "colour.py").read_bytes()


def test_the_limit_is_rays() -> None:
    from ray._private.ray_constants import DASHBOARD_CLIENT_MAX_SIZE
    from ray._private.runtime_env.packaging import GCS_STORAGE_MAX_SIZE

    assert min(DASHBOARD_CLIENT_MAX_SIZE, GCS_STORAGE_MAX_SIZE) == MAX_BYTES


def test_a_prefix_inside_of_the_working_directory_is_not_shipped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "my results [1]").mkdir()
    (root / "my results [1]" / "model.bin").write_text("no")
    monkeypatch.setenv("MARIN_PREFIX", str(root / "my results [1]"))
    assert not any("results" in name for name in package_of(str(root)).files)


def test_a_run_ships_one_version_of_the_code_whatever_is_edited_meanwhile(cluster: Cluster, root: Path) -> None:
    before = shipped(cluster, root)
    (root / "colour.py").write_text("print('red')")
    assert shipped(cluster, root) == before


def test_the_same_files_are_the_same_package_wherever_and_whenever_they_were_written(
    root: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(root), str(copy)], check=True)
    os.utime(copy / "colour.py", (1, 1))
    assert package_of(str(copy)).uri == package_of(str(root)).uri
    assert package_of(str(copy)).data == package_of(str(root)).data
    changed = tmp_path / "changed"
    subprocess.run(["cp", "-r", str(root), str(changed)], check=True)
    (changed / "colour.py").write_text("print('red')")
    assert package_of(str(changed)).uri != package_of(str(root)).uri


def test_steps_that_begin_at_once_upload_once(cluster: Cluster, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploaded: list[str] = []
    upload = JobsApi.upload_package

    async def counted(api: JobsApi, uri: str, data: bytes) -> None:
        uploaded.append(uri)
        await upload(api, uri, data)

    monkeypatch.setattr(JobsApi, "upload_package", counted)

    async def run() -> list[Code]:
        return await asyncio.gather(*(_shipped(settings_of(cluster, root), ()) for _ in range(8)))

    codes = asyncio.run(run())
    assert set(uploaded) == {codes[0].package}
    assert len(uploaded) == 1
    assert len(set(codes)) == 1


def test_what_is_too_large_is_reported_with_its_largest_files_before_it_is_packed(cluster: Cluster, root: Path) -> None:
    for number in range(6):
        with (root / f"model-{number}.bin").open("wb") as file:
            file.truncate((30 - number) * 2**20)
    with pytest.raises(CodeError) as refused:
        shipped(cluster, root)
    assert f"The working directory '{root}' has 165.0 MiB to ship, and the cluster takes less than 100.0 MiB." in str(
        refused.value
    )
    told = ", ".join(f"'model-{number}.bin' ({30 - number}.0 MiB)" for number in range(5))
    assert f"The largest files are {told}. List in .gitignore what" in str(refused.value)


@pytest.mark.long
def test_a_package_as_large_as_the_limit_is_taken(cluster: Cluster, root: Path) -> None:
    with (root / "model.bin").open("wb") as file:
        file.truncate(100 * 2**20 - 5_000)
    assert shipped(cluster, root).package is not None


def test_ignore_files_that_leave_nothing_are_reported(cluster: Cluster, root: Path) -> None:
    (root / ".gitignore").write_text("*\n")
    with pytest.raises(CodeError, match=r"leave nothing of it to ship\. Remove patterns from them"):
        shipped(cluster, root)


def test_a_working_directory_that_is_none_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(CodeError, match=r"The working directory '.*nowhere' is not a folder"):
        shipped(cluster, tmp_path / "nowhere")


def test_a_script_inside_brings_its_folder(cluster: Cluster, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))
    monkeypatch.syspath_prepend(str(root / ".venv" / "bin"))
    code = shipped(cluster, root, [f"{root}/scripts/paint.py:paint"])
    assert (code.root, code.import_paths) == (str(root), ("scripts",))


def test_a_script_that_is_not_shipped_is_reported(cluster: Cluster, root: Path, tmp_path: Path) -> None:
    (root / "notes" / "own.py").write_text("")
    with pytest.raises(CodeError) as outside:
        shipped(cluster, root, [f"{tmp_path}/x.py:f"])
    assert str(outside.value) == (
        f"'{tmp_path}/x.py' is outside of the working directory '{root}' that is shipped. Move it inside, or set "
        "MARIN_CLUSTER_WORKING_DIR."
    )
    with pytest.raises(
        CodeError, match=r"was not shipped with the working directory '.*': it did not exist when the run"
    ):
        shipped(cluster, root, [f"{root}/notes/own.py:f"])


def test_this_project_is_shipped_whole_and_small() -> None:
    package = package_of(str(project_root()))
    assert {"marin_assets/definitions.py", "tests/support/toy_steps.py", "pyproject.toml", "uv.lock"} <= package.files
    assert len(package.data) < 20_000_000
    assert not any(name.startswith((".venv", ".git/", "outputs")) for name in package.files)


def test_of_an_image_nothing_is_shipped_and_ray_is_not_loaded(root: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from marin_resources.ray_tpu.cluster.code.code import ship\n"
        "from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode\n"
        "settings = ClusterSettings(address='http://nowhere:1', code=CodeMode.IMAGE)\n"
        "print(asyncio.run(ship(settings, None, ['json:dumps'], '/nowhere')).to_dict())\n"
        "print('ray' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    code, loaded = said.splitlines()
    assert Code.from_dict(ast.literal_eval(code)) == Code(mode=CodeMode.IMAGE)
    assert loaded == "False"


def test_a_script_of_an_image_is_found_below_its_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))
    code = asyncio.run(ship(image(root, "/app"), None, [f"{root}/scripts/paint.py:paint"], "/nowhere"))  # type: ignore[arg-type]
    assert (code.package, code.root, code.image_root, code.import_paths) == (None, str(root), "/app", ("scripts",))
    assert code.runtime_env() == {}
    assert code.command("python", "my.job", "a note") == "cd /app && exec python -m my.job 'a note'"


def test_a_script_that_an_image_does_not_have_is_reported(root: Path) -> None:
    with pytest.raises(CodeError, match=r"paint.py' is not on the cluster, .* set MARIN_CLUSTER_IMAGE_ROOT to where"):
        asyncio.run(ship(image(root, None), None, [f"{root}/scripts/paint.py:paint"], "/nowhere"))  # type: ignore[arg-type]
    with pytest.raises(CodeError, match=r"'/x.py' is outside of the working directory '.*', which is '/app' in the"):
        asyncio.run(ship(image(root, "/app"), None, ["/x.py:f"], "/nowhere"))  # type: ignore[arg-type]


def test_the_command_is_for_a_shell_whatever_is_in_it(tmp_path: Path) -> None:
    code = Code(mode=CodeMode.IMAGE, root="/r", image_root=f"{tmp_path}/it's here; $HOME")
    Path(str(code.image_root)).mkdir()
    (Path(str(code.image_root)) / "say.py").write_text("import sys, os; print(sys.argv[1:], os.getcwd())")
    said = subprocess.run(
        ["sh", "-c", code.command(sys.executable, "say", "a'b", "$(x)", "")], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"{['''a'b''', '$(x)', '']} {code.image_root}\n"


def test_it_goes_through_json() -> None:
    code = Code(mode=CodeMode.SHIP, package="gcs://_ray_pkg_1.zip", root="/r", import_paths=(".", "tests"))
    assert Code.from_dict(code.to_dict()) == code
    assert code.runtime_env() == {"working_dir": "gcs://_ray_pkg_1.zip"}


def image(root: Path, image_root: str | None) -> ClusterSettings:
    return ClusterSettings(
        address="http://nowhere:1", code=CodeMode.IMAGE, working_dir=str(root), image_root=image_root
    )
