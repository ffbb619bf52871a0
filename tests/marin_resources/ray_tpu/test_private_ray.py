"""A Ray of this machine is for its user alone: no port of it answers another host, no other user enters its folder."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path

import pytest
from listening import listening
from ray_cluster import Cluster

from marin_resources.host.private_folder import NotPrivateError, private_folder
from marin_resources.ray_tpu.cluster.local.processes import processes_of
from marin_resources.ray_tpu.local.start import ray_folder
from marin_resources.ray_tpu.ray_options import UnmeetableError

NOBODY = 65534
AS_IT_RUNS = """
import json, sys
from listening import listening
import psutil
from marin_resources.ray_tpu.local.local_ray import OwnRay

own = OwnRay(1)
ray = own.started()
assert ray.get(ray.remote(lambda: 1).remote()) == 1
me = psutil.Process()
session = ray._private.worker._global_node.get_session_dir_path()
print(json.dumps([listening([me, *me.children(recursive=True)]), session]))
own.shutdown()
"""


@pytest.mark.parametrize("mode", [None, 0o777, 0o700], ids=["new", "open", "private"])
def test_a_folder_for_ray_is_of_this_user_alone(tmp_path: Path, mode: int | None) -> None:
    folder = tmp_path / "of-ray"
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    inside = private_folder(folder)
    assert inside.parent == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(NotPrivateError, match=f"{name}', and that is not a folder of this user's own"):
            private_folder(tmp_path / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_another_users_folder_in_its_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as parent:  # short, for Ray's sockets
        folder = Path(parent, f"marin-ray-{os.geteuid()}")
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        monkeypatch.setenv("RAY_TMPDIR", parent)
        with pytest.raises(UnmeetableError, match=r"not a folder of this user's own\. Remove it\. Or set RAY_TMPDIR"):
            ray_folder()


@pytest.mark.long
def test_the_ray_of_a_run_is_on_loopback_and_in_a_folder_of_its_user() -> None:
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:  # short, for Ray's sockets
        os.chmod(folder, 0o755)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_TMPDIR": folder}
        ended = subprocess.run(
            [sys.executable, "-c", AS_IT_RUNS], env=env, stdout=subprocess.PIPE, text=True, check=True
        )
        ports, session = json.loads(ended.stdout.splitlines()[-1])
        assert len(ports) >= 5, "Ray has ports"
        assert [port for port in ports if not ip_address(port[0]).is_loopback] == []
        assert_closed(Path(session), Path(folder))


@pytest.mark.long
def test_the_local_cluster_with_a_slice_is_on_loopback_and_in_a_folder_of_its_user(lively_cluster: Cluster) -> None:
    hosts = lively_cluster.add_slice("v4-8", "fake-v4-8-0")
    assert hosts
    ports = listening(processes_of(lively_cluster.local))
    assert len(ports) >= 10, "Ray has ports"
    assert [port for port in ports if not ip_address(port[0]).is_loopback] == []
    assert_closed(Path(lively_cluster.temp_dir, "session_latest").resolve(), Path("/tmp"))


def assert_closed(session: Path, end: Path) -> None:
    """A folder above the session's, and below `end`, lets no other user in."""
    between = [folder for folder in session.parents if folder.is_relative_to(end) and folder != end]
    assert any(folder.stat().st_mode & 0o077 == 0 for folder in between), between


@pytest.fixture
def lively_cluster():
    with Cluster(cpus=1) as cluster:
        yield cluster
