"""Files that a list names are copied: each once, whole, and although their server is busy."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.download.file_lists import DownloadListedConfig, ListError, chosen, download_listed
from marin_assets.stages.download.stores.source_file import SourceError
from marin_assets.stages.download.web import faults
from marin_assets.step.step import Step
from marin_assets.step.values import unwrap_versioned_value, versioned
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import list_files, write_bytes
from marin_resources.storage.paths import join

FILES = {"q=high/a.zst": b"a" * 90_000, "q=high/sub/b.zst": b"bb", "q=low/c.zst": b"ccc", "readme.txt": b"r"}


class Server(ThreadingHTTPServer):
    """Serves FILES and `more`. `busy`: answers 503 that often to a GET of a path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.more: dict[str, bytes] = {}
        self.busy: Counter[str] = Counter()
        self.gets: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        name = self.path.removeprefix("/data/")
        content = {**FILES, **self.server.more}.get(name)
        if self.command == "GET":
            self.server.gets[name] += 1
            if self.server.busy[name]:
                self.server.busy[name] -= 1
                self.send_error(503)
                return
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.md5(content).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def make(server: Server, tmp_path: Path, **fields: Any) -> dict[str, Any]:
    config = DownloadListedConfig(**{"base": server.url, "output_path": str(tmp_path / "out"), **fields})
    return download_listed(unwrap_versioned_value(config))


def copied(tmp_path: Path) -> dict[str, bytes]:
    output = tmp_path / "out"
    return {str(Path(file).relative_to(output)): Path(file).read_bytes() for file in list_files(str(output))}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_the_files_of_a_list_are_copied_by_globs(server: Server, tmp_path: Path, packed: bool, whole: bool) -> None:
    text = "\n".join(f"{server.url if whole else ''}{name}" for name in FILES).encode() + b"\n\n"
    (tmp_path / "paths").write_bytes(gzip.compress(text) if packed else text)
    result = make(server, tmp_path, list_path=str(tmp_path / "paths"), include=("q=high/**/*.zst",))
    files = copied(tmp_path)
    checksums = json.loads(files.pop("checksums.json"))["files"]
    assert files == {name: FILES[name] for name in ("q=high/a.zst", "q=high/sub/b.zst")}
    assert [row["sha256"] for row in checksums] == [hashlib.sha256(data).hexdigest() for data in files.values()]
    assert (result["listed"], result["files"], result["bytes"], result["retries"]) == (4, 2, 90_002, 0)


def test_a_busy_server_is_tried_again_and_counted(server: Server, tmp_path: Path) -> None:
    server.busy["q=low/c.zst"] = 3
    assert make(server, tmp_path, names=("q=low/c.zst",))["retries"] == 3
    assert copied(tmp_path)["q=low/c.zst"] == b"ccc"


def test_a_server_that_stays_busy_is_an_error_and_what_is_there_is_kept(server: Server, tmp_path: Path) -> None:
    server.busy["readme.txt"] = 100
    with pytest.raises(
        ShardError, match="failed 8 times in a row, the last time because of 'server_error': the server answered 503"
    ):
        make(server, tmp_path, names=("q=high/a.zst", "readme.txt"))
    server.busy.clear()
    make(server, tmp_path, names=("q=high/a.zst", "readme.txt"))
    assert server.gets["q=high/a.zst"] == 1


def test_a_file_that_is_missing_is_an_error_at_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        make(server, tmp_path, names=("q=high/none.zst",))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["https://elsewhere.example/a"], "'https://elsewhere.example/a', which is no name of a file below"),
        (["a/../../b"], "'a/../../b', which is no name of a file below"),
        (["a/.hidden"], "'a/.hidden', which is no name of a file below"),
        (["a", "a"], "The list has 'a' 2 times"),
        ([], "has no names. Expected one a line."),
    ],
)
def test_a_list_that_cannot_be_used_is_one_sentence(
    server: Server, tmp_path: Path, lines: list[str], sentence: str
) -> None:
    (tmp_path / "paths").write_text("\n".join(lines))
    with pytest.raises(ListError) as error:
        make(server, tmp_path, list_path=str(tmp_path / "paths"))
    assert sentence in str(error.value)


def test_a_glob_without_a_match_names_what_the_list_has() -> None:
    with pytest.raises(ListError, match=r"The glob 'x/\*' matches none of the 2 names of 'l', which begins with 'a'"):
        chosen(["a", "b/c"], ["x/*"], "l")


def test_neither_list_nor_names_is_an_error(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ListError, match="expected either a list or names"):
        make(server, tmp_path)


def test_a_sample_is_chosen_by_name_alone_and_a_share_keeps_what_it_had(server: Server, tmp_path: Path) -> None:
    server.more = {f"s/{number}": b"x" for number in range(40)}
    names = tuple(server.more)
    make(server, tmp_path, names=names, sample_files=5)
    first = set(copied(tmp_path)) - {"checksums.json"}
    assert len(first) == 5
    for order in (names[::-1], (*names, "readme.txt")):
        make(server, tmp_path / "2", names=order, include=("s/*",), sample_files=5)
        assert set(copied(tmp_path / "2")) - {"checksums.json"} == first
    share_of_few = make(server, tmp_path / "3", names=names[:20], sample_fraction=0.5)
    share_of_all = make(server, tmp_path / "4", names=names, sample_fraction=0.5)
    assert set(copied(tmp_path / "3")) < set(copied(tmp_path / "4"))
    assert 4 <= share_of_few["files"] <= 16 < 30 > share_of_all["files"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sample_files": 0}, "sample_files is 0, expected a number above 0"),
        ({"sample_fraction": 1.5}, "sample_fraction is 1.5, expected one above 0, up to 1"),
        ({"sample_fraction": 0.5, "sample_files": 1}, "are both set, expected at most one"),
        ({"sample_fraction": 1e-9}, "keeps none of 4 names"),
    ],
)
def test_a_sample_that_cannot_be_drawn_is_one_sentence(
    server: Server, tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ListError, match=sentence):
        make(server, tmp_path, names=tuple(FILES), **fields)


def test_a_sample_that_would_not_enter_the_version_is_refused() -> None:
    config = DownloadListedConfig(base="https://a.org/", names=versioned(("a",)), sample_files=5)
    with pytest.raises(ListError, match=r"sample_files is 5, expected versioned\(5\): it decides the content"):
        Step(name="raw/x", fn=download_listed, config=config)


def test_a_list_of_whole_addresses_needs_no_base(server: Server, tmp_path: Path) -> None:
    (tmp_path / "urls").write_text(f"{server.url}readme.txt\n{server.url}q=low/c.zst?token=1\n")
    server.more["q=low/c.zst?token=1"] = b"ccc"
    make(server, tmp_path, base="", list_path=str(tmp_path / "urls"))
    host = f"127.0.0.1:{server.server_port}/data"
    assert {name: data for name, data in copied(tmp_path).items() if name != "checksums.json"} == {
        f"{host}/readme.txt": b"r",
        f"{host}/q=low/c.zst": b"ccc",
    }


def test_a_list_comes_from_the_server_itself(server: Server, tmp_path: Path) -> None:
    server.more["paths.gz"] = gzip.compress(b"readme.txt\nq=low/c.zst\n")
    assert make(server, tmp_path, list_path=f"{server.url}paths.gz")["files"] == 2


def test_a_list_that_is_cut_is_one_sentence(server: Server, tmp_path: Path) -> None:
    (tmp_path / "paths.gz").write_bytes(gzip.compress(b"readme.txt\n" * 100)[:-9])
    with pytest.raises(SourceError, match=r"paths\.gz' is damaged, cut or no text \(EOFError: its end is missing\)"):
        make(server, tmp_path, list_path=str(tmp_path / "paths.gz"))


def test_a_name_of_a_folder_is_no_file_and_counted(server: Server, tmp_path: Path) -> None:
    result = make(server, tmp_path, names=("q=low/", "q=low/c.zst"))
    assert (result["left_out_folders"], result["files"]) == (1, 1)
    with pytest.raises(ListError, match="no name of a file: 'q=low/' ends with '/'"):
        make(server, tmp_path, names=("q=low/",))


def test_a_list_of_a_bucket_is_copied_with_its_checksums(disk_or_gcs_prefix: str, tmp_path: Path) -> None:
    for name, data in FILES.items():
        write_bytes(join(disk_or_gcs_prefix, name), data)
    sums = "".join(f"{hashlib.sha1(data).hexdigest()}  {name}\n" for name, data in FILES.items())
    write_bytes(join(disk_or_gcs_prefix, "sha1sums.txt"), sums.encode())
    config = DownloadListedConfig(
        base=f"{disk_or_gcs_prefix}/",
        names=tuple(FILES),
        checksum_file=join(disk_or_gcs_prefix, "sha1sums.txt"),
        output_path=str(tmp_path / "out"),
    )
    assert download_listed(unwrap_versioned_value(config))["unchecked"] == 0
    assert {name: data for name, data in copied(tmp_path).items() if name != "checksums.json"} == FILES
