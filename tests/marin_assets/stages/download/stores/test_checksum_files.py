"""Files of checksums, in every form in which they are written, decide about the files that they name."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from crawl_server import CrawlServer

from marin_assets.stages.download.files import DownloadFilesConfig, SourceError, download_files
from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.download.stores.checksum_files import expected_of, parsed
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

FILES = {"a.bin": b"alpha", "b c.txt": b"beta and more", "sub/d.bin": b"delta"}
MD5, SHA256 = "d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def crc32c(data: bytes) -> str:
    return google_crc32c.Checksum(data).hexdigest().decode()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(data)
    return tmp_path / "source"


def copy(source: Path, output: Path, **fields: Any) -> dict[str, Any]:
    return download_files(
        unwrap_versioned_value(DownloadFilesConfig(source=str(source), output_path=str(output), **fields))
    )


@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        (f"{MD5}  a.bin", "a.bin", "md5"),
        (f"{MD5} *a.bin", "a.bin", "md5"),
        (f"{SHA256.upper()}  ./sub/a b  c.bin", "sub/a b  c.bin", "sha256"),
        (f"{SHA256} a.bin\r", "a.bin", "sha256"),
        (f"{SHA256}\ta.bin", "a.bin", "sha256"),
        (f"\\{MD5}  a\\\\b\\nc", "a\\b\nc", "md5"),
        (f"SHA256 (a (1).bin) = {SHA256}", "a (1).bin", "sha256"),
        (f"SHA2-256(a.bin)= {SHA256}", "a.bin", "sha256"),
        (f"MD5(a.bin)= {MD5}", "a.bin", "md5"),
        (MD5, "", "md5"),
        ("0a1b2c3d  a.bin", "a.bin", "crc32c"),
        ("a" * 40 + "  a.bin", "a.bin", "sha1"),
        ("a" * 128 + "  a.bin", "a.bin", "sha512"),
    ],
)
def test_a_line_of_every_form_has_its_name_and_kind(line: str, name: str, kind: str) -> None:
    [read] = parsed(f"# a comment\n\n{line}\n", "SUMS")
    assert (read.name, read.kind) == (name, kind)
    assert read.digest in line.lower()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The file of checksums 'SUMS' has no line"),
        ("# only this\n", "has no line"),
        (f"{MD5}  a\nhello world\n", r"has the line 2 'hello world', expected an MD5, SHA-1, SHA-256, SHA-512 or"),
        (f"{MD5[:-1]}  a\n", "has the line 1"),
        (f"SHA256 (a) = {MD5}\n", "has the line 1"),
        ("<html>404 Not Found</html>\n", "has the line 1 '<html>404 Not Found</html>'"),
    ],
)
def test_a_text_that_is_none_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SourceError, match=sentence):
        parsed(text, "SUMS")


@pytest.mark.parametrize("program", [["md5sum"], ["sha1sum", "--tag"], ["sha256sum", "-b"], ["sha512sum"]])
def test_the_files_of_the_programs_that_write_them_are_read(source: Path, tmp_path: Path, program: list[str]) -> None:
    (source / "a\\n\n.bin").write_bytes(b"odd")
    names = [*FILES, "a\\n\n.bin"]
    text = subprocess.run([*program, "--", *names], cwd=source, capture_output=True, check=True, text=True).stdout
    (tmp_path / "SUMS").write_text(text)
    expected, unchecked = expected_of(
        str(tmp_path / "SUMS"), names, access=StoreAccess(), output_path=str(tmp_path / "out")
    )
    kind = program[0].removesuffix("sum")
    contents = {**FILES, "a\\n\n.bin": b"odd"}
    assert unchecked == []
    assert {name: checksum.digest for name, checksum in expected.items()} == {
        name: hashlib.new(kind, data).hexdigest() for name, data in contents.items()
    }


@pytest.mark.parametrize("kind", ["md5", "sha1", "sha256", "sha512", "crc32c"])
def test_a_copy_is_verified_by_a_file_of_each_kind(source: Path, tmp_path: Path, kind: str) -> None:
    digest = crc32c if kind == "crc32c" else lambda data: hashlib.new(kind, data).hexdigest()
    lines = {name: f"{digest(data)}  {name}" for name, data in FILES.items()}
    (tmp_path / "SUMS").write_bytes(gzip.compress("\n".join(lines.values()).encode()))
    assert copy(source, tmp_path / "out", checksum_file=str(tmp_path / "SUMS"))["unchecked"] == 0
    (tmp_path / "SUMS").write_text("\n".join({**lines, "a.bin": f"{digest(b'other')}  a.bin"}.values()))
    with pytest.raises(ShardError, match=rf"a\.bin' has the .* '{digest(b'alpha')}', expected '{digest(b'other')}' by"):
        copy(source, tmp_path / "out", checksum_file=str(tmp_path / "SUMS"))


def test_a_file_that_the_checksums_lack_is_reported_or_counted(source: Path, tmp_path: Path) -> None:
    (source / "SHA256SUMS").write_text(f"{hashlib.sha256(b'alpha').hexdigest()}  a.bin\n")
    (source / "SHA256SUMS.gpg").write_text("signature")
    sums = str(source / "SHA256SUMS")
    with pytest.raises(SourceError, match=r"has no line for 'b c\.txt', 'sub/d\.bin' \(2 files in all\)"):
        copy(source, tmp_path / "out", checksum_file=sums)
    assert copy(source, tmp_path / "out", checksum_file=sums, allow_unchecked=True)["unchecked"] == 2


def test_a_name_with_or_without_its_folder_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "SUMS").write_text(f"{MD5}  enwiki/20240501/a.bz2\n{SHA256}  b.bz2\n")
    expected, unchecked = expected_of(
        str(tmp_path / "SUMS"), ["20240501/b.bz2", "a.bz2", "xa.bz2"], access=StoreAccess(), output_path=str(tmp_path)
    )
    assert {name: checksum.kind for name, checksum in expected.items()} == {"a.bz2": "md5", "20240501/b.bz2": "sha256"}
    assert unchecked == ["xa.bz2"]


def test_two_checksums_of_a_file_that_differ_are_an_error_and_the_strongest_counts(tmp_path: Path) -> None:
    (tmp_path / "SUMS").write_text(f"{MD5}  a/x\n{SHA256}  a/x\n{'0' * 32}  b/x\n")
    access, path = StoreAccess(), str(tmp_path / "SUMS")
    assert expected_of(path, ["a/x", "b/x"], access=access, output_path="")[0]["a/x"].kind == "sha256"
    (tmp_path / "SUMS").write_text(f"{MD5}  a/x\n{'0' * 32}  b/x\n")
    with pytest.raises(SourceError, match="has 2 lines for 'x' with different checksums"):
        expected_of(path, ["x"], access=access, output_path="")


def test_each_file_has_a_file_of_its_own_by_a_form(server: CrawlServer, tmp_path: Path) -> None:
    server.files = {"a.xml": b"alpha", "a.xml.md5": f"MD5(a.xml)= {hashlib.md5(b'alpha').hexdigest()}\n".encode()}
    config = DownloadFilesConfig(
        source=f"{server.url}a.xml", output_path=str(tmp_path / "out"), checksum_file=f"{server.url}{{name}}.md5"
    )
    download_files(unwrap_versioned_value(config))
    assert (tmp_path / "out/a.xml").read_bytes() == b"alpha"
    server.files["a.xml.md5"] = f"{MD5}  b.xml\n".encode()
    with pytest.raises(SourceError, match=r"a\.xml\.md5' is of 'b\.xml', expected one of 'a\.xml'"):
        download_files(unwrap_versioned_value(config))


def test_a_file_of_checksums_that_does_not_exist_is_one_sentence(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none' does not exist, expected a list\. Correct the path"):
        copy(source, tmp_path / "out", checksum_file=str(tmp_path / "none"))
