"""Files of text in archives become documents; hostile and damaged archives are counted or a sentence."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard

from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.stages.transform.text_files import REASONS, TextFilesConfig, ingest_text_files
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

MB = 1024**2


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def run(folder: Path | str, files: dict[str, bytes], **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    for name, content in files.items():
        write_bytes(join(str(folder), "raw", name), content)
    fields = {"max_bad_fraction": 1.0, **fields}
    config = TextFilesConfig(input_path=join(str(folder), "raw"), output_path=join(str(folder), "documents"), **fields)
    counts = ingest_text_files(unwrap_versioned_value(config))
    assert counts["files"] == counts["files_kept"] + counts["rejected"]
    assert counts["rejected"] == sum(count for name, count in counts.items() if name.startswith("rejected_"))
    return counts, [d for shard in list_shards(join(str(folder), "documents")) for d in read_documents(shard)]


def reasons(counts: dict[str, Any]) -> dict[str, int]:
    return {reason: counts[f"rejected_{reason}"] for reason in REASONS if counts[f"rejected_{reason}"]}


Members = Iterable[tuple[str, bytes]]


def packed_zip(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # of two members with one name
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def packed_tar(members: Members, mode: str = "w") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


PACKED: dict[str, Callable[[Members], bytes]] = {
    ".zip": packed_zip,
    ".ZIP": lambda members: packed_zip(members, zipfile.ZIP_STORED),
    "-bzip2.zip": lambda members: packed_zip(members, zipfile.ZIP_BZIP2),
    ".tar": packed_tar,
    ".tar.gz": lambda members: packed_tar(members, "w:gz"),
    ".tgz": lambda members: packed_tar(members, "w:gz"),
    ".tar.bz2": lambda members: packed_tar(members, "w:bz2"),
    ".tbz2": lambda members: packed_tar(members, "w:bz2"),
    ".tar.xz": lambda members: packed_tar(members, "w:xz"),
    ".txz": lambda members: packed_tar(members, "w:xz"),
    ".tar.zst": lambda members: zstandard.compress(packed_tar(members)),
    ".tzst": lambda members: zstandard.compress(packed_tar(members)),
}
LETTERS = (("./b/two.txt", b"Two\r\n"), ("one.md", "# Öne\n".encode()), ("page.html", b"<p>Three <b>words</b> here"))


@pytest.mark.parametrize("kind", PACKED)
def test_the_files_of_an_archive_are_documents(tmp_path: Path, kind: str) -> None:
    counts, documents = run(tmp_path, {f"sub/letters{kind}": PACKED[kind](LETTERS), "a.txt": b"alone"})
    inside = f"sub/letters{kind}"
    assert {d.id: d.text for d in documents} == {
        "a.txt": "alone",
        f"{inside}/b/two.txt": "Two\n",
        f"{inside}/one.md": "# Öne\n",
        f"{inside}/page.html": "Three words here",
    }
    assert documents[1].metadata == {"file": documents[1].id}
    assert (counts["files"], counts["archives"], counts["documents"]) == (4, 1, 4)


def test_parts_of_a_member_are_numbered(tmp_path: Path) -> None:
    _, documents = run(tmp_path, {"a.zip": packed_zip([("b.txt", b"one\n---\ntwo")])}, split_at="---")
    assert [d.id for d in documents] == ["a.zip/b.txt#0", "a.zip/b.txt#1"]


def test_the_members_of_a_zip_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    _, documents = run(tmp_path, {"a.zip": packed_zip([("b.txt", b"b"), ("a.txt", b"a")])})
    assert [d.text for d in documents] == ["a", "b"]


@pytest.mark.parametrize("kind", [".zip", ".tar.gz"])
def test_an_archive_in_a_bucket_is_read(any_prefix: str, kind: str) -> None:
    counts, _ = run(any_prefix, {f"letters{kind}": PACKED[kind](LETTERS)})
    assert counts["documents"] == 3


HOSTILE = (
    ("/etc/passwd.txt", "unsafe_name"),
    ("../up.txt", "unsafe_name"),
    ("a/../../up.txt", "unsafe_name"),
    ("C:/drive.txt", "unsafe_name"),
    (".hidden.txt", "hidden"),
    ("a/.git/config.txt", "hidden"),
    ("__MACOSX/._a.txt", "hidden"),
    ("__MACOSX/a.txt", "hidden"),
    ("photo.jpg", "unknown_suffix"),
    ("inner.zip", "unknown_suffix"),
    ("inner.tar.gz", "unknown_suffix"),
    ("empty.txt", "empty"),
    ("binary.txt", "binary"),
    ("latin.txt", "unknown_encoding"),
    ("huge.txt", "too_large"),
)
CONTENTS = {"empty": b"", "binary": b"\0", "unknown_encoding": b"\xe9", "too_large": b"x" * 2001}


@pytest.mark.parametrize("kind", [".zip", ".tar", ".tar.gz"])
def test_a_member_that_is_no_text_is_counted_by_its_reason(tmp_path: Path, kind: str) -> None:
    members = [(name, CONTENTS.get(reason, b"text")) for name, reason in HOSTILE]
    twins = [("good.txt", b"first"), ("./good.txt", b"second"), ("good.txt", b"third")]
    counts, documents = run(tmp_path, {f"a{kind}": PACKED[kind]([*twins, *members])}, max_file_bytes=2000)
    assert [d.id for d in documents] == [f"a{kind}/good.txt"]
    expected = {reason: sum(r == reason for _, r in HOSTILE) for reason in REASONS}
    assert reasons(counts) == {name: count for name, count in {**expected, "duplicate_name": 2}.items() if count}
    assert counts["files"] == 1 + 2 + len(HOSTILE)
    assert not list(tmp_path.parent.glob("up.txt"))


def test_names_with_backslashes_are_paths_of_windows(tmp_path: Path) -> None:
    names = ["letters\\a.txt", "..\\up.txt", "\\\\server\\b.txt"]
    data = packed_zip([(name.replace("\\", "|"), b"text") for name in names]).replace(b"|", b"\\")
    counts, documents = run(tmp_path, {"a.zip": data})
    assert [d.id for d in documents] == ["a.zip/letters/a.txt"]
    assert reasons(counts) == {"unsafe_name": 2}


def test_links_and_devices_in_a_tar_are_counted(tmp_path: Path) -> None:
    file = io.BytesIO()
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    with tarfile.open(fileobj=file, mode="w") as archive:
        for number, kind in enumerate(kinds):
            info = tarfile.TarInfo(f"{number}.txt")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        folder = tarfile.TarInfo("folder.txt")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        archive.addfile(tarfile.TarInfo("z.txt"))
    counts, _ = run(tmp_path, {"a.tar": file.getvalue(), "good.txt": b"good"})
    assert reasons(counts) == {"not_a_file": 5, "empty": 1}


def test_a_link_and_a_folder_with_content_in_a_zip_are_counted(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.mkdir("folder.txt")
        archive.writestr("folder with content.txt/", "text")
    counts, _ = run(tmp_path, {"a.zip": file.getvalue(), "good.txt": b"good"})
    assert reasons(counts) == {"not_a_file": 2}


def encrypted(data: bytes) -> bytes:
    """Set the flag of encryption of all members."""
    changed = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(signature, at + 1)) >= 0:
            changed[at + offset] |= 1
    return bytes(changed)


def test_an_encrypted_member_is_counted(tmp_path: Path) -> None:
    counts, _ = run(tmp_path, {"a.zip": encrypted(packed_zip([("a.txt", b"secret")])), "good.txt": b"good"})
    assert reasons(counts) == {"encrypted": 1}


def test_a_name_of_a_tar_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    data = packed_tar([("caf|.txt", b"text")])
    header = bytearray(data[:512].replace(b"|", b"\xe9"))
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    _, [document] = run(tmp_path, {"a.tar": bytes(header) + data[512:]})
    assert document.id == "a.tar/caf\\xe9.txt"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


@cache
def members() -> list[tuple[str, bytes]]:
    noise = b"".join(zlib.crc32(b"%d" % i).to_bytes(4, "big").hex().encode() + b"\n" for i in range(20_000))
    return [(f"{i}.txt", noise) for i in range(3)]


@cache
def zipped(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    return packed_zip(members(), method)


@cache
def tarred(mode: str = "w") -> bytes:
    return packed_tar(members(), mode)


def second_header() -> int:
    """Where that of a tar's second member begins."""
    return 512 + (len(members()[0][1]) + 511) // 512 * 512


def comment_that_swallows(data: bytes) -> bytes:
    """The first member's comment is as long as the entry of the second."""
    first = data.index(b"PK\x01\x02")
    entry = data.index(b"PK\x01\x02", first + 1) - first
    return data[: first + 32] + entry.to_bytes(2, "little") + data[first + 34 :]


def without_member_names(data: bytes) -> bytes:
    return data.replace(b"PK\x03\x04", b"PK\x03\x05", 1)


DAMAGED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "no archive": ("a.zip", lambda: b"This is text."),
    "no byte": ("a.zip", lambda: b""),
    "cut": ("a.zip", lambda: zipped()[:-100]),
    "cut at the front": ("a.zip", lambda: zipped()[2000:]),
    "a changed letter": ("a.zip", lambda: flipped(zipped(zipfile.ZIP_STORED), 1000)),
    "a changed byte": ("a.zip", lambda: flipped(zipped(), 2000)),
    "a directory whose first comment swallows a member": ("a.zip", lambda: comment_that_swallows(zipped())),
    "a member without its header": ("a.zip", lambda: without_member_names(zipped())),
    "an unknown compression": ("a.zip", lambda: zipped().replace(b"\x14\0\0\0\x08\0", b"\x14\0\0\0\x63\0")),
    "no tar": ("a.tar", lambda: b"This is text." * 100),
    "no byte of a tar": ("a.tar", lambda: b""),
    "cut in a member": ("a.tar", lambda: tarred()[:5000]),
    "cut at a member": ("a.tar", lambda: tarred()[: second_header()]),
    "cut in a header": ("a.tar", lambda: tarred()[: second_header() + 100]),
    "a damaged second header": ("a.tar", lambda: flipped(tarred(), second_header() + 5)),
    "two tars": ("a.tar", lambda: tarred() + tarred()),
    "gzip as a tar": ("a.tar", lambda: tarred("w:gz")),
    "a tar as gzip": ("a.tgz", lambda: tarred()),
    "no byte of gzip": ("a.tar.gz", lambda: b""),
    "gzip that is cut": ("a.tar.gz", lambda: tarred("w:gz")[:-5000]),
    "gzip without its checksum": ("a.tar.gz", lambda: tarred("w:gz")[:-4]),
    "gzip with a wrong checksum": ("a.tar.gz", lambda: flipped(tarred("w:gz"), len(tarred("w:gz")) - 8)),
    "gzip with a wrong byte": ("a.tar.gz", lambda: flipped(tarred("w:gz"), len(tarred("w:gz")) // 2)),
    "xz that is cut": ("a.tar.xz", lambda: tarred("w:xz")[:-100]),
    "bzip2 that is cut": ("a.tar.bz2", lambda: tarred("w:bz2")[:-100]),
    "zstd that is cut": ("a.tar.zst", lambda: zstandard.compress(tarred())[:-100]),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_archive_is_one_sentence_with_its_path(tmp_path: Path, case: str) -> None:
    name, make = DAMAGED[case]
    with pytest.raises(
        ShardError, match=rf"The archive '.*raw/{name}' is damaged, truncated or of another kind"
    ) as raised:
        run(tmp_path, {name: make(), "good.txt": b"good"})
    assert "\n" not in str(raised.value)
    assert not list((tmp_path / "documents").glob("*.zst"))


def sparse(members: int, size: int) -> bytes:
    """A tar whose members are holes of `size` bytes, each in 512 bytes."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number in range(members):
            info = tarfile.TarInfo(f"{number}.txt")
            info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(size)}
            archive.addfile(info)
    return file.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "one.zip": lambda: packed_zip([("a.txt", b"x" * 200 * MB)]),
    "many.zip": lambda: packed_zip((f"{number}.txt", b"x" * 60 * MB) for number in range(3)),
    "one.tar.gz": lambda: packed_tar([("a.txt", b"x" * 200 * MB)], "w:gz"),
    "many.tar.xz": lambda: packed_tar(((f"{number}.txt", b"x" * 60 * MB) for number in range(3)), "w:xz"),
    "holes.tar": lambda: sparse(500, 60 * MB),
}
READ = """
import json, re, sys, time
from pathlib import Path
from marin_assets.documents import DocumentError
from marin_assets.stages.transform.text.text_archives import read_members
# ru_maxrss is inherited from the process that started this one
megabytes = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
before, started, message, reasons = megabytes(), time.monotonic(), "", []
try:
    for _, content in read_members(sys.argv[1], reject_name=lambda name: "", max_bytes=64 * 1024**2):
        reasons.append("" if isinstance(content, bytes) else content.reason)
except DocumentError as error:
    message = str(error)
print(json.dumps([megabytes() - before, time.monotonic() - started, reasons, message]))
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped_in_seconds_and_bounded_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    megabytes, seconds, reasons, message = json.loads(done.stdout)
    print(f"{name}: {path.stat().st_size:,} bytes, {megabytes} MB, {seconds:.2f} s")
    assert megabytes < 250
    assert seconds < 20
    if name == "one.zip":
        assert (reasons, message) == (["too_large"], "")
    else:
        assert "expands to more than 500 times its size" in message
