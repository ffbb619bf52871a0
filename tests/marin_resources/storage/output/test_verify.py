"""Verification finds every file that differs from the published one, on a disk and in buckets."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from marin_resources.storage.control.control import put
from marin_resources.storage.files import remove, write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.manifest.manifest import NAME, take_manifest
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verification import Finding, Problem
from marin_resources.storage.output.verify import NO_CHECKSUMS, NO_MANIFEST, verify_output, verify_outputs
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output

FILES = {f"part-{i:02}.txt": f"part {i:02}".encode() for i in range(10)} | {"cache/train/c/0": bytes(range(200))}


def publish(prefix: str, name: str = "x", files: dict[str, bytes] | None = None) -> str:
    """The path of a complete output."""
    store = Store(prefix)
    claim = store.claim(Output(name=name, version="1", identity="i"), attempt=1, resumable=False, run_id=None)
    for file, data in (files or FILES).items():
        write_bytes(join(claim.path, file), data)
    store.publish(claim, {}, {})
    return claim.path


def problems(path: str, **options: object) -> list[tuple[str, str]]:
    return [(finding.problem.value, finding.name) for finding in verify_output(path, **options).findings]  # type: ignore[arg-type]


def test_an_output_as_it_was_published_is_right(any_prefix: str) -> None:
    decision = verify_output(publish(any_prefix))
    assert decision.ok
    assert (decision.files, decision.compared_files, decision.unverified) == (11, 11, "")
    assert decision.bytes == decision.compared_bytes == 270


def test_every_planted_fault_is_found_and_named(any_prefix: str) -> None:
    path = publish(any_prefix)
    remove(join(path, "part-03.txt"))
    write_bytes(join(path, "part-99.txt"), b"new")
    write_bytes(join(path, "part-05.txt"), b"longer than before")
    write_bytes(join(path, "part-07.txt"), b"part_07")
    write_bytes(join(path, "cache/train/c/0"), bytes(199) + b"\xff")
    assert problems(path) == [
        ("corrupted", "cache/train/c/0"),
        ("missing", "part-03.txt"),
        ("resized", "part-05.txt"),
        ("corrupted", "part-07.txt"),
        ("extra", "part-99.txt"),
    ]
    found = verify_output(path).findings
    assert found[1].sentence() == "missing 'part-03.txt': expected 7 bytes, found nothing"
    assert found[2].sentence() == "resized 'part-05.txt': expected 7 bytes, found 18 bytes"
    assert found[4].sentence() == "extra 'part-99.txt': expected nothing, found 3 bytes"
    assert found[3].expected.partition(":")[0] == found[3].found.partition(":")[0]
    assert found[3].expected != found[3].found


def test_a_flipped_bit_at_any_place_of_a_file_is_found(tmp_path: Path) -> None:
    path = publish(str(tmp_path))
    file = Path(path, "cache/train/c/0")
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert problems(path) == [("corrupted", "cache/train/c/0")]


def test_control_files_and_logs_are_no_data(any_prefix: str) -> None:
    path = publish(any_prefix)
    for name in (".marin/shards/a.json", ".marin/attempts/1.log", ".marin/aside/1/half", ".new", "worker.log"):
        write_bytes(join(path, name), b"anything")
    assert problems(path) == []


def test_a_damaged_control_file_that_the_data_do_not_need_is_a_finding_and_the_data_are_right(any_prefix: str) -> None:
    path = publish(any_prefix)
    names = (".executor_status.lock", ".marin/attempts/1.json", ".marin/jobs/1.json", ".marin/transfers.json")
    for name in names:
        write_bytes(join(path, name), b"anything")
    decision = verify_output(path)
    assert problems(path) == [("damaged", name) for name in names]
    assert (decision.ok, decision.data_ok, decision.compared_files) == (False, True, 11)
    remove(join(path, "part-03.txt"))
    assert not verify_output(path).data_ok


def test_a_folder_without_rights_is_a_finding_of_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = publish(str(tmp_path), "x"), publish(str(tmp_path), "y")
    listed = os.scandir

    def refuse(place: str) -> object:  # as for a user without rights: root has them all
        if place.startswith(first):
            raise PermissionError(13, "Permission denied", place)
        return listed(place)

    monkeypatch.setattr(os, "scandir", refuse)
    decisions = verify_outputs([first, second])
    assert [finding.problem.value for finding in decisions[first].findings] == ["unreadable"]
    assert decisions[second].ok


def test_the_bytes_are_read_if_requested(any_prefix: str) -> None:
    path = publish(any_prefix)
    decision = verify_output(path, read=True)
    assert decision.ok
    assert decision.compared_files == 11
    write_bytes(join(path, "part-07.txt"), b"part_07")
    assert problems(path, read=True) == [("corrupted", "part-07.txt")]


def test_a_sample_is_reproducible_and_has_the_requested_share(disk_or_gcs_prefix: str) -> None:
    path = publish(disk_or_gcs_prefix)
    for name in FILES:
        data = bytearray(FILES[name])
        data[0] ^= 1
        write_bytes(join(path, name), bytes(data))
    by_seed = [problems(path, sample=0.5, seed=seed, read=True) for seed in range(4)]
    assert by_seed == [problems(path, sample=0.5, seed=seed, read=True) for seed in range(4)]
    if not is_local(path):  # the checksums of a store are free, so all are compared
        assert {len(found) for found in by_seed} == {11}
    else:
        assert {len(found) for found in by_seed} == {6}
        assert len(set(map(tuple, by_seed))) > 1
        assert verify_output(path, sample=0.5, seed=1).compared_files == 6


def test_a_sample_still_finds_differences_of_names_and_sizes(disk_or_gcs_prefix: str) -> None:
    path = publish(disk_or_gcs_prefix)
    remove(join(path, "part-03.txt"))
    write_bytes(join(path, "part-05.txt"), b"longer than before")
    assert problems(path, sample=0.01) == [("missing", "part-03.txt"), ("resized", "part-05.txt")]


def test_an_output_of_a_bucket_is_verified_on_a_disk(any_prefix: str, tmp_path: Path) -> None:
    path = publish(any_prefix)
    fs, root = filesystem_of(path)
    copy = tmp_path / "copy"
    fs.get(root, str(copy), recursive=True)
    assert verify_output(str(copy)).compared_files == 11
    assert problems(str(copy)) == []
    (copy / "part-07.txt").write_text("part_07")
    assert problems(str(copy)) == [("corrupted", "part-07.txt")]


def test_an_output_of_a_disk_is_verified_in_a_bucket(any_prefix: str, tmp_path: Path) -> None:
    made, path = publish(str(tmp_path / "made")), join(any_prefix, "copy")
    for name in (*FILES, NAME, RECORD):
        write_bytes(join(path, name), Path(made, name).read_bytes())
    decision = verify_output(path)
    assert (decision.ok, decision.compared_files) == (True, 11)


def test_the_same_sample_is_taken_on_every_store(tmp_path: Path, gcs_prefix: str) -> None:
    local, remote = publish(str(tmp_path)), publish(gcs_prefix)
    for path in (local, remote):
        for name in FILES:
            write_bytes(join(path, name), bytes(len(FILES[name])))
    assert set(problems(local, sample=0.3, seed=7)) < set(problems(remote, sample=0.3, seed=7))


def test_an_output_of_marins_is_reported_as_not_verifiable(any_prefix: str) -> None:
    path = join(any_prefix, "raw/x-123456")
    write_bytes(join(path, "data.txt"), b"data")
    put(join(path, ".executor_status"), b"SUCCESS")
    decision = verify_output(path)
    assert (decision.ok, decision.unverified) == (True, NO_MANIFEST)


def test_of_the_first_format_names_and_sizes_alone_are_compared_and_that_is_reported(tmp_path: Path) -> None:
    path = publish(str(tmp_path))
    entries = [{"name": name, "size": size} for name, size in take_manifest(path).files]
    put(join(path, NAME), json.dumps({"format_version": 1, "entries": entries}).encode())
    put(join(path, RECORD), b"{}")
    decision = verify_output(path)
    assert (decision.ok, decision.compared_files, decision.unverified) == (True, 0, NO_CHECKSUMS)
    remove(join(path, "part-03.txt"))
    assert problems(path) == [("missing", "part-03.txt")]


def test_a_lost_manifest_is_a_finding(any_prefix: str) -> None:
    path = publish(any_prefix)
    digest = take_manifest(path).digest
    remove(join(path, NAME))
    [finding] = verify_output(path).findings
    expected = f"a manifest with the digest {digest!r}, as recorded"
    assert finding == Finding(name=NAME, problem=Problem.MISSING, expected=expected, found="nothing")


def test_what_we_claimed_and_marin_completed_has_no_manifest_and_nothing_is_wrong_with_it(any_prefix: str) -> None:
    claim = Store(any_prefix).claim(
        Output(name="x", version="1", identity="i"), attempt=1, resumable=False, run_id=None
    )
    claim.lease.release()
    write_bytes(join(claim.path, "data.txt"), b"marin's")
    put(join(claim.path, ".executor_status"), b"SUCCESS")
    decision = verify_output(claim.path)
    assert (decision.findings, decision.unverified) == ((), NO_MANIFEST)


def test_a_manifest_of_another_output_is_found(tmp_path: Path) -> None:
    path, other = publish(str(tmp_path)), publish(str(tmp_path), "y", {"part-00.txt": b"other"})
    write_bytes(join(path, NAME), Path(other, NAME).read_bytes())
    write_bytes(join(path, "part-00.txt"), b"other")
    assert ("corrupted", NAME) in problems(path)


def test_damaged_control_files_are_findings(tmp_path: Path) -> None:
    first, second = publish(str(tmp_path), "x"), publish(str(tmp_path), "y")
    write_bytes(join(first, NAME), b"{")
    write_bytes(join(second, RECORD), b"{")
    assert (problems(first), problems(second)) == ([("unreadable", NAME)], [("unreadable", RECORD)])


def test_a_file_that_is_gone_when_it_is_read_is_missing_and_one_that_cannot_be_read_is_a_finding(
    tmp_path: Path,
) -> None:
    path = publish(str(tmp_path), files={"gone": b"", "loop": b""})
    for name, target in (("gone", "nowhere"), ("loop", "loop")):  # a listing reports 0 bytes for either
        Path(path, name).unlink()
        Path(path, name).symlink_to(Path(path, target))
    assert problems(path) == [("missing", "gone"), ("unreadable", "loop")]


def test_many_outputs_are_verified_at_once(disk_or_gcs_prefix: str) -> None:
    paths = [publish(disk_or_gcs_prefix, f"step-{i}") for i in range(12)]
    remove(join(paths[4], "part-03.txt"))
    write_bytes(join(paths[9], "part-07.txt"), b"part_07")
    said: list[str] = []
    decisions = verify_outputs([*paths, paths[0]], report=said.append)
    assert list(decisions) == paths
    assert [path for path, decision in decisions.items() if not decision.ok] == [paths[4], paths[9]]
    assert said == []
