"""What is not a regular file: refused at publication, a finding of a verification, and never opened."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from one_output import claim
from one_sentence import one_sentence

from marin_resources.storage.manifest.manifest import IrregularFileError, take_manifest
from marin_resources.storage.output.store import Claim, Store
from marin_resources.storage.output.verify import verify_output


def write_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket has a limit of 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


SPECIAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (os.mkfifo, "a FIFO (a named pipe)"),
    "socket": (write_socket, "a socket"),
    "folder": (lambda path: path.symlink_to("below"), "a symbolic link to a folder, 'below'"),
    "folder outside": (lambda path: path.symlink_to("/usr"), "a symbolic link to a folder, '/usr'"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a symbolic link to a device, '/dev/zero'"),
}
LEADING_OUT: dict[str, tuple[str, str]] = {
    "file outside": ("../../outside.txt", "a symbolic link to '../../outside.txt', outside of the output"),
    "absolute": ("/etc/passwd", "a symbolic link to '/etc/passwd', an absolute path, which is another file when"),
    "nowhere": ("gone.txt", "a symbolic link to 'gone.txt', where no file is"),
    "itself": ("odd", "a symbolic link to 'odd', where no file is"),
    "control file": (".executor_status", "a symbolic link to '.executor_status', which is not a data file"),
}


@pytest.fixture
def claimed(tmp_path: Path) -> Claim:
    """An attempt that has written two files."""
    claimed = claim(Store(str(tmp_path / "prefix")))
    (tmp_path / "prefix/outside.txt").write_text("outside")
    Path(claimed.path, "below").mkdir()
    Path(claimed.path, "below/a.txt").write_text("a")
    Path(claimed.path, "b.txt").write_text("bb")
    return claimed


def refused(claimed: Claim) -> str:
    with pytest.raises(IrregularFileError) as raised:
        Store(str(Path(claimed.path).parents[1])).publish(claimed, {}, {})
    claimed.lease.release()
    return one_sentence(raised)


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_not_a_file_is_refused_at_publication(claimed: Claim, kind: str) -> None:
    make, phrase = SPECIAL[kind]
    make(Path(claimed.path, "odd"))
    assert refused(claimed).startswith(f"'{claimed.path}/odd' is {phrase}. An output holds regular files")


@pytest.mark.parametrize("kind", LEADING_OUT)
def test_a_link_that_leads_out_of_the_data_is_refused_at_publication(claimed: Claim, kind: str) -> None:
    target, phrase = LEADING_OUT[kind]
    Path(claimed.path, "odd").symlink_to(target)
    assert refused(claimed).startswith(f"'{claimed.path}/odd' is {phrase}")


def test_a_link_to_a_data_file_is_data_and_is_verified(claimed: Claim) -> None:
    Path(claimed.path, "below/link.txt").symlink_to("../b.txt")
    Path(claimed.path, "again.txt").symlink_to("below/link.txt")
    Store(str(Path(claimed.path).parents[1])).publish(claimed, {}, {})
    taken = take_manifest(claimed.path)
    assert taken.files == (("again.txt", 2), ("b.txt", 2), ("below/a.txt", 1), ("below/link.txt", 2))
    assert (verify_output(claimed.path).ok, verify_output(claimed.path).compared_files) == (True, 4)
    Path(claimed.path, "b.txt").write_text("xx")
    found = [(finding.problem.value, finding.name) for finding in verify_output(claimed.path).findings]
    assert found == [("corrupted", "again.txt"), ("corrupted", "b.txt"), ("corrupted", "below/link.txt")]


def test_what_is_hidden_or_a_log_is_not_data_and_not_opened(claimed: Claim) -> None:
    os.mkfifo(Path(claimed.path, ".pipe"))
    os.mkfifo(Path(claimed.path, "pipe.log"))
    Path(claimed.path, ".cache").symlink_to("/usr")
    Store(str(Path(claimed.path).parents[1])).publish(claimed, {}, {})
    assert verify_output(claimed.path).ok


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_took_the_place_of_a_file_is_a_finding(claimed: Claim, kind: str) -> None:
    Store(str(Path(claimed.path).parents[1])).publish(claimed, {}, {})
    make, phrase = SPECIAL[kind]
    Path(claimed.path, "b.txt").unlink()
    make(Path(claimed.path, "b.txt"))
    make(Path(claimed.path, "more"))
    assert [finding.sentence() for finding in verify_output(claimed.path).findings] == [
        f"unreadable 'b.txt': expected 2 bytes, found {phrase}",
        f"extra 'more': expected nothing, found {phrase}",
    ]
