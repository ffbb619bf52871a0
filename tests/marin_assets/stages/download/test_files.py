"""Files are copied from any store: the same bytes, a checksum each, and no truncated or changed file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from marin_assets.defaults.downloads import default_download
from marin_assets.stages.download.files import DownloadFilesConfig, SourceError, copy_file, download_files, list_source
from marin_assets.stages.download.files import source_file as as_listed
from marin_assets.stages.download.web import faults
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_assets.step.resolve import resolve
from marin_assets.step.values import this_partition, unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import list_files, names_below, write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, is_local, join, kind_of

FILES = {"a.txt": b"alpha", "b/c.bin": bytes(range(256)) * 40_000, "b/d.txt": b""}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def config(source: object, output: Path, **fields: object) -> DownloadFilesConfig:
    return unwrap_versioned_value(DownloadFilesConfig(source=str(source), output_path=str(output), **fields))  # type: ignore[arg-type]


def copied(output: Path) -> dict[str, bytes]:
    return {str(Path(f).relative_to(output)): Path(f).read_bytes() for f in list_files(str(output))}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, data in {**FILES, ".hidden": b"no", "b/.git/config": b"no"}.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(data)
    return tmp_path / "source"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


class Server(ThreadingHTTPServer):
    """Serves `content` at every URL. `truncated`: HEAD reports all bytes, GET sends half of them. `moving`: a new ETag
    for each request. `password`: the header Authorization that a request must have."""

    content = b"0123456789" * 1000
    truncated = moving = False
    password: str | None = None
    requests = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.server.password in (None, self.headers["Authorization"]):
            return True
        self.send_error(401)
        return False

    def do_HEAD(self) -> None:
        self.server.requests += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.send_header("ETag", f'"{self.server.requests if self.server.moving else 1}"')
        self.end_headers()

    def do_GET(self) -> None:
        body = self.server.content[: len(self.server.content) // (2 if self.server.truncated else 1)]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_folder_is_copied_with_size_and_checksum_of_each_file(source: Path, output: Path) -> None:
    result = download_files(config(source, output))
    files = copied(output)
    listing = json.loads(files.pop("checksums.json"))
    assert files == FILES
    assert listing["files"] == [{"name": n, "size": len(d), "sha256": sha256(d)} for n, d in sorted(FILES.items())]
    lines = "".join(f"{sha256(d)}  {n}\n" for n, d in sorted(FILES.items()))
    size_bytes = sum(map(len, FILES.values()))
    counts = {"files": 3, "bytes": size_bytes, "bytes_fetched": size_bytes, "requests": 0, "retries": 0}
    assert result == {**counts, "sha256": sha256(lines.encode())}


def test_a_glob_keeps_the_names_below_its_fixed_part(source: Path, output: Path) -> None:
    download_files(config(f"{source}/**/*.txt", output))
    assert set(copied(output)) == {"a.txt", "b/d.txt", "checksums.json"}


def test_a_single_file_keeps_its_name(source: Path, output: Path) -> None:
    assert download_files(config(source / "b" / "c.bin", output))["bytes"] == len(FILES["b/c.bin"])
    assert set(copied(output)) == {"c.bin", "checksums.json"}


def test_files_come_from_any_store(source: Path, output: Path) -> None:
    fsspec.filesystem("memory").pipe_file("/raw/x/y.bin", b"in memory")
    assert download_files(config("memory://raw", output))["files"] == 1
    assert copied(output)["x/y.bin"] == b"in memory"


def test_the_output_does_not_depend_on_place_or_time(source: Path, tmp_path: Path) -> None:
    first = download_files(config(source, tmp_path / "one"))
    os.utime(source / "a.txt", (1, 1))
    assert download_files(config(source, tmp_path / "two")) == first
    assert copied(tmp_path / "one") == copied(tmp_path / "two")


def test_a_file_that_was_copied_before_a_crash_is_not_copied_again(source: Path, output: Path) -> None:
    with pytest.raises(ShardError, match="has the SHA-256"):
        download_files(config(source, output, expected_sha256={"b/d.txt": "0" * 64}))
    assert set(copied(output)) == {"a.txt", "b/c.bin"}
    before = {name: (output / name).stat().st_ino for name in ("a.txt", "b/c.bin")}
    assert download_files(config(source, output))["files"] == 3
    assert before == {name: (output / name).stat().st_ino for name in before}


def test_a_file_that_changed_since_a_crash_is_copied_again(source: Path, output: Path) -> None:
    download_files(config(source, output))
    (source / "a.txt").write_bytes(b"omega")
    os.utime(source / "a.txt", (1, 1))
    download_files(config(source, output))
    assert copied(output)["a.txt"] == b"omega"


def test_an_unexpected_checksum_is_an_error_and_leaves_no_file(source: Path, output: Path) -> None:
    with pytest.raises(ShardError, match=f"a.txt' has the SHA-256 '{sha256(b'alpha')}', expected 'abc'"):
        download_files(config(source, output, expected_sha256={"a.txt": "abc"}))
    assert not (output / "a.txt").exists()
    good = {name: sha256(data).upper() for name, data in FILES.items()}
    assert download_files(config(source, output, expected_sha256=good))["files"] == 3


def test_an_expected_file_that_is_missing_is_an_error(source: Path, output: Path) -> None:
    with pytest.raises(SourceError, match=r"expected_sha256 names 'z\.txt', which is not in"):
        download_files(config(source, output, expected_sha256={"z.txt": "0" * 64}))


@pytest.mark.parametrize("content", [b"alp", b"alpha and more"])
def test_a_file_that_has_another_size_than_listed_is_an_error(source: Path, output: Path, content: bytes) -> None:
    request = config(source, output)
    listed = as_listed(request, "a.txt", list_source(str(source))["a.txt"])
    (source / "a.txt").write_bytes(content)
    with pytest.raises(SourceError, match=f"was listed with 5 bytes, and has {len(content)}"):
        copy_file(listed)
    assert not output.exists() or not list(output.rglob("*.txt"))


def test_a_web_file_is_copied_and_its_query_is_not_part_of_the_name(server: Server, output: Path) -> None:
    download_files(config(f"http://127.0.0.1:{server.server_port}/data/x.bin?token=1", output))
    assert copied(output)["x.bin"] == server.content


def test_a_web_file_behind_a_password_is_copied_with_that_of_netrc(
    server: Server, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.password = "Basic " + base64.b64encode(b"reader:four words").decode()
    request = config(f"http://127.0.0.1:{server.server_port}/data/x.bin", output)
    with pytest.raises(FileNotFoundError, match=r"or its server refuses to answer without .* of ~/\.netrc"):
        download_files(request)
    netrc = tmp_path / "netrc"
    netrc.write_text('machine 127.0.0.1 login reader password "four words"\n')
    monkeypatch.setenv("NETRC", str(netrc))
    download_files(request)
    assert copied(output)["x.bin"] == server.content


def test_a_truncated_web_file_is_an_error(server: Server, output: Path) -> None:
    server.truncated = True
    with pytest.raises(ShardError, match="wrong_size': the server has 5000 bytes, expected 10000 by the listing"):
        download_files(config(f"http://127.0.0.1:{server.server_port}/x.bin", output))
    assert not list(output.rglob("x.bin*"))


def test_a_web_file_whose_etag_changes_during_the_copy_is_an_error(server: Server, output: Path) -> None:
    server.moving = True
    with pytest.raises(ShardError, match="changed during the copy"):
        download_files(config(f"http://127.0.0.1:{server.server_port}/x.bin", output))


def test_a_missing_source_is_an_error(tmp_path: Path, output: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        download_files(config(tmp_path / "nowhere", output))
    with pytest.raises(FileNotFoundError, match="has no files"):
        download_files(config(tmp_path / "*.txt", output))


def test_files_behind_symlinks_are_copied(source: Path, output: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.txt").write_bytes(b"linked")
    (source / "folder").symlink_to(tmp_path / "elsewhere")
    (source / "file.txt").symlink_to(tmp_path / "elsewhere/a.txt")
    assert {"folder/a.txt", "file.txt"} <= set(list_source(str(source)))
    download_files(config(str(source / "*.txt"), output))
    assert copied(output)["file.txt"] == b"linked"


@pytest.mark.timeout(10)
def test_a_fifo_in_the_source_is_an_error(source: Path, output: Path) -> None:
    os.mkfifo(source / "pipe.bin")
    for name in (str(source), f"{source}/*.bin", f"{source}/pipe.bin"):
        with pytest.raises(OSError, match=r"pipe\.bin' is a FIFO, expected a file"):
            download_files(config(name, output))


def test_a_file_with_letters_of_a_glob_in_its_name_is_copied(tmp_path: Path, output: Path) -> None:
    path = tmp_path / "std::a[1]*.txt"
    path.write_bytes(b"odd")
    download_files(config(str(path), output))
    assert copied(output)[path.name] == b"odd"


@pytest.mark.parametrize("form", ["{partition}/*.txt", "{partition}", "{partition}/a.txt", "{drop}/**/*.txt"])
@pytest.mark.parametrize("key", ["[1]", "*", "?", "[!a]", "[[]1]", "a[0-9]*", "]1["])
def test_a_key_with_wildcards_gets_the_files_of_its_own_delivery_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, key: str
) -> None:
    for delivery in ("1", "2", "b", "a5", "x"):
        (tmp_path / "deliveries" / delivery).mkdir(parents=True)
        (tmp_path / "deliveries" / delivery / "a.txt").write_text(f"data of {delivery}")
    step = default_download("deliveries", this_partition(form=f"deliveries/{form}"), partitions=dynamic("deliveries"))
    graph = build_graph([step])
    at_key = resolve(graph[step].at(key), graph, lambda output: str(tmp_path / "out" / output.relative()), "/p")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        download_files(at_key)
    (tmp_path / "deliveries" / key).mkdir()
    (tmp_path / "deliveries" / key / "a.txt").write_text("own data")
    download_files(at_key)
    assert copied(Path(at_key.output_path)).pop("a.txt") == b"own data"
    assert set(copied(Path(at_key.output_path))) == {"a.txt", "checksums.json"}


def test_the_folder_that_a_relative_glob_is_relative_to_is_no_glob(
    tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("work1", "work[1]"):
        (tmp_path / folder / "deliveries").mkdir(parents=True)
        (tmp_path / folder / "deliveries" / "a.txt").write_text(folder)
    monkeypatch.chdir(tmp_path / "work[1]")
    download_files(config("deliveries/*.txt", output))
    assert copied(output)["a.txt"] == b"work[1]"


def test_a_key_with_wildcards_is_its_own_delivery_in_a_bucket(disk_or_gcs_prefix: str, output: Path) -> None:
    for delivery in ("1", "2", "[1]", "*"):
        write_bytes(join(disk_or_gcs_prefix, "deliveries", delivery, "a.txt"), delivery.encode())
    step = default_download(
        "deliveries",
        this_partition(form=join(disk_or_gcs_prefix, "deliveries/{partition}/*.txt")),
        partitions=dynamic("deliveries"),
    )
    graph = build_graph([step])
    for key in ("[1]", "*"):
        download_files(resolve(graph[step].at(key), graph, lambda made: str(output / made.relative()), "/p"))
        [found] = output.glob("raw/*/*/a.txt")
        assert found.read_text() == key
        found.unlink()


@pytest.mark.parametrize("placed", ["", "sub", "sub/deep"])
def test_an_object_that_stands_for_a_folder_is_no_file(any_prefix: str, output: Path, placed: str) -> None:
    """Consoles and tools of stores create them: "raw/" and "raw/sub/", of 0 bytes."""
    if is_local(any_prefix):
        pytest.skip("a disk has folders")
    write_bytes(join(any_prefix, "raw/a.txt"), b"a")
    write_bytes(join(any_prefix, "raw/sub/b.txt"), b"b")
    put_folder(join(any_prefix, "raw", placed))
    for source, names in (("raw", ["a.txt", "sub/b.txt"]), ("raw/**", ["a.txt", "sub/b.txt"]), ("raw/*", ["a.txt"])):
        assert sorted(list_source(join(any_prefix, source))) == names
    counts = download_files(config(join(any_prefix, "raw"), output))
    assert counts["files"] == 2
    assert sorted(name for name in copied(output) if name.endswith(".txt")) == ["a.txt", "sub/b.txt"]
    assert sorted(name for name in names_below(join(any_prefix, "raw"))) == ["a.txt", "sub/b.txt"]


def test_a_folder_with_a_placeholder_alone_has_no_files(gcs_prefix: str, output: Path) -> None:
    put_folder(join(gcs_prefix, "raw"))
    with pytest.raises(FileNotFoundError, match="has no files"):
        list_source(join(gcs_prefix, "raw"))


def test_an_object_with_content_and_the_name_of_a_folder_is_refused(gcs_prefix: str) -> None:
    write_bytes(join(gcs_prefix, "raw/a.txt"), b"a")
    put_folder(join(gcs_prefix, "raw/sub"), b"lost")
    with pytest.raises(SourceError, match="with 4 bytes, whose name is that of a folder"):
        list_source(join(gcs_prefix, "raw"))


def put_folder(path: str, data: bytes = b"") -> None:
    fs, place = filesystem_of(path)
    if kind_of(path) is StoreKind.S3:
        bucket, _, key = place.partition("/")
        fs.call_s3("put_object", Bucket=bucket, Key=f"{key}/", Body=data)
    else:
        fs.pipe_file(f"{place}/", data)
