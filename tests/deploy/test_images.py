"""The images are built by buildah, and entered: the services start there, as a user that is not root.

Instead of Debian's image from a hub it stands on a Debian that mmdebstrap makes. Docker and Kubernetes are not tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certificates import make_certificate
from person import Person
from running import ROOT, wait_until

from marin_resources.ray_tpu.cluster.local.head import free_ports

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("mmdebstrap"),
        reason="Building an image needs root, buildah and mmdebstrap: apt install buildah mmdebstrap",
    ),
]
BASE, IMAGE, PROXY, CLUSTER = "localhost/marin-test-base", "marin-test", "marin-proxy-test", "marin-cluster-test"
ENVIRONMENT = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
FOLDER = "/var/lib/marin"
SERVICES = """
set -e
cp /opt/marin/.dagster/dagster.yaml .
printf 'load_from: [{grpc_server: {socket: /var/lib/marin/code.sock, location_name: marin}}]' > workspace.yaml
dagster api grpc --socket /var/lib/marin/code.sock -m marin_assets.definitions --location-name marin &
until [ -S code.sock ]; do sleep 0.2; done
dagster-daemon run -w workspace.yaml &
marin-webserver -h 127.0.0.1 -p $PORT -w workspace.yaml &
wait -n
"""
VERSIONS = (
    "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
)


def buildah(*arguments: str) -> str:
    command = ["buildah", *arguments]
    ended = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{arguments}: {ended.stdout[-2000:]} {ended.stderr[-2000:]}"
    return ended.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Debian of mmdebstrap, as an image."""
    folder = tmp_path_factory.mktemp("base")
    bootstrap = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", str(folder / "base.tar")]
    subprocess.run(bootstrap, check=True, capture_output=True)
    (folder / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
    buildah("bud", "-t", BASE, "-f", str(folder / "Dockerfile"), str(folder))
    (folder / "base.tar").unlink()
    yield BASE
    buildah("rmi", BASE)


def build(base: str, out: Path, *arguments: str) -> str:
    """What the build prints."""
    env = {**os.environ, **ENVIRONMENT, "BASE": base, "BUILDER": "buildah", "OUT": str(out)}
    command = [str(ROOT / "deploy/images/build.sh"), *arguments]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


@pytest.fixture(scope="module")
def built(base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield build(base, tmp_path_factory.mktemp("built"), IMAGE)
    buildah("rmi", IMAGE)


@pytest.fixture
def container(built: str) -> Iterator[str]:
    name = buildah("from", IMAGE).strip()
    yield name
    buildah("rm", name)


def inside(container: str, script: str) -> str:
    return buildah("run", container, "--", "bash", "-c", script)


def test_it_says_how_large_it_is_and_what_is_in_it(built: str) -> None:
    assert re.search(r"^size +\d", built, re.M), built
    [bill] = re.findall(r"Python +\d+ packages: (\S+)", built)
    assert {"dagster", "ray"} <= {part["name"] for part in json.loads(Path(bill).read_text())["components"]}
    [debian] = re.findall(r"Debian +\d+ packages: (\S+)", built)
    assert "python3 " in Path(debian).read_text()


def test_it_has_no_compiler_no_secret_and_no_right_to_change_itself(container: str) -> None:
    assert inside(container, "id -u").strip() == "10001"
    assert inside(container, "command -v gcc cc c++ clang ld make || true").strip() == ""
    assert (
        inside(
            container,
            "find / -xdev -writable -type f -not -path '/proc/*' -not -path '/var/lib/marin/*' "
            "-not -path '/tmp/*' 2>/dev/null || true",
        ).strip()
        == ""
    )
    names = inside(container, "cd /opt/marin && find . -path ./.venv -prune -o -type f -print").split()
    assert not [name for name in names if ".env" in name.split("/")[-1] and name != "./deploy/vm/marin.env"]
    assert not [name for name in names if name.startswith(("./.git/", "./tests/", "./.deploy/", "./outputs/"))]
    assert "TOKEN" not in inside(container, "env")


def test_its_packages_are_those_of_the_lock_file(container: str) -> None:
    found = {
        normal(name): version for name, version in json.loads(inside(container, f"python -c '{VERSIONS}'")).items()
    }
    uv = [str(ROOT / ".tools/bin/uv"), "export", "--quiet", "--locked", "--no-default-groups", "--extra", "deploy"]
    exported = subprocess.run([*uv, "--no-hashes"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pins = re.findall(r"^([\w.-]+)==([\w.+-]+)(?: ;.*)?$", exported, re.M)
    locked = {normal(name): version for name, version in pins}
    assert len(locked) > 100
    different = {
        name: (found[name], locked[name]) for name in found.keys() & locked.keys() if found[name] != locked[name]
    }
    assert different == {}
    assert found.keys() - locked.keys() <= {"marin-dagster"}


def normal(name: str) -> str:
    """Of a package, as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@contextmanager
def services(container: str, port: int) -> Iterator[None]:
    """Code server, daemon and webserver, in the image."""
    script = f"cd {FOLDER} && export HOME={FOLDER} PORT={port} MARIN_PREFIX={FOLDER}/outputs && {SERVICES}"
    command = ["buildah", "run", container, "--", "bash", "-c", script]
    process = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, start_new_session=True)
    try:
        yield
    finally:
        subprocess.run(["pkill", "-KILL", "-u", "10001"], check=False)
        process.wait()


def test_its_services_start_and_materialize_a_step(container: str) -> None:
    [port] = free_ports(1)
    person = Person(f"http://127.0.0.1:{port}")
    with services(container, port):
        wait_until(lambda: loaded(person), "the services", timeout_s=180)
        run_id = person.launch("two_steps")["run"]["runId"]
        wait_until(lambda: person.run(run_id)[0] in ("SUCCESS", "FAILURE"), "the run's end", timeout_s=300)
        assert person.run(run_id)[0] == "SUCCESS"
    assert "data-" in inside(container, f"ls {FOLDER}/outputs/two_steps")


def loaded(person: Person) -> bool:
    try:
        return "RepositoryConnection" in str(person.ask("{ repositoriesOrError { __typename } }"))
    except OSError:
        return False


def test_the_image_of_the_login_takes_its_configuration(base: str, tmp_path: Path) -> None:
    printed = build(base, tmp_path, "--proxy", PROXY)
    assert re.search(r"^size +\d", printed, re.M), printed
    assert "libapache2-mod-auth-openidc " in (tmp_path / "marin-proxy.packages.txt").read_text()
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "proxy.conf").write_text(
        "OIDCClientSecret s\nOIDCCryptoPassphrase p\nDefine MARIN_BROWSE_PASSPHRASE p\n"
    )
    make_certificate(secrets / "tls.crt", secrets / "tls.key")
    for secret in secrets.iterdir():
        os.chown(secret, 10002, 10002)
        secret.chmod(0o400)
    names = {"MARIN_URL": "https://marin.example.org", "MARIN_PROVIDER": "https://accounts.example.org"}
    names |= {"MARIN_CLIENT_ID": "marin", "MARIN_READERS": "readers", "MARIN_OPERATORS": "operators"}
    names |= {"MARIN_WEBSERVER": "webserver:3000", "MARIN_READ_ONLY": "readonly:3001"}
    names |= {"MARIN_BROWSE_URL": "https://browse.example.org", "MARIN_BROWSER": "browse:3002"}
    names |= {"MARIN_SESSIONS_SERVER": "sessions:11211"}
    run = tmp_path / "run"
    run.mkdir()
    os.chown(run, 10002, 10002)
    container = buildah("from", PROXY).strip()
    try:
        assert inside(container, "id -u").strip() == "10002"
        assert inside(container, "/usr/bin/redis-server --version").startswith("Redis server v=7.")
        assert inside(container, "command -v gcc cc c++ clang ld make python3 || true").strip() == ""
        given = [f"--env={name}={value}" for name, value in names.items()]
        test = ["/usr/sbin/apache2", "-t", "-f", "/etc/marin/apache2.conf", "-D", "MARIN_SESSIONS_SERVER"]
        mounted = [f"--volume={secrets}:/run/secrets:ro", f"--volume={run}:/run/apache2"]
        buildah("run", *mounted, *given, container, "--", *test)
    finally:
        buildah("rm", container)
        buildah("rmi", PROXY)


def test_a_node_of_a_cluster_starts_ray_in_its_image_and_has_what_the_launcher_needs(base: str, tmp_path: Path) -> None:
    printed = build(base, tmp_path, "--cluster", "gcp", CLUSTER)
    try:
        assert "marin-cluster.sbom.json" in printed
        script = (
            "rsync --version | head -1 && ssh -V && redis-server --version && "
            "marin cluster render --help > /dev/null && "
            # not `ray stop`, which would end every Ray of this machine: the container has its processes
            "(ray start --head --port=$PORT --include-dashboard=false --num-cpus=1 --block > log & ray=$!; "
            "until grep 'Ray runtime started' log; do sleep 0.5; done; kill $ray; wait $ray || true) && "
            "python -c 'import googleapiclient, marin_assets.definitions'"
        )
        entered = buildah("from", CLUSTER).strip()
        said = inside(entered, f"export PORT={free_ports(1)[0]} RAY_AUTH_MODE=disabled; {script}")
        buildah("rm", entered)
        assert "rsync  version" in said
        assert "Ray runtime started." in said
        entered = buildah("from", CLUSTER).strip()
        assert "TOKEN" not in inside(entered, "env")
        names = inside(entered, "cd /opt/marin && find . -path ./.venv -prune -o -type f -print").split()
        assert not [name for name in names if name.startswith(("./.git/", "./tests/", "./.env", "./outputs/"))]
        buildah("rm", entered)
    finally:
        buildah("rmi", CLUSTER)


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("the group `rehearsal` is not installed: make rehearsal")
    files = [ROOT / "deploy/images/Dockerfile", ROOT / "infra/images/Dockerfile"]
    found = subprocess.run([hadolint, *files], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")
