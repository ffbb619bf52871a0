"""`marin verify`: planted faults are found, printed with the step to rerun, and in the JSON."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from location import FILES, Location

from marin_assets.documents.frames.id_merge import merge_ids
from marin_assets.documents.frames.id_table import NAME as TABLE
from marin_assets.documents.rows import write_rows
from marin_resources.storage.control.control import put
from marin_resources.storage.files import remove, write_bytes
from marin_resources.storage.paths import is_local, join

Marin = Callable[..., tuple[int, str, str]]
CHUNK = "train/input_ids/data/c/0"


def test_outputs_that_are_as_they_were_published_are_right(made: Location, marin: Marin) -> None:
    code, out, err = marin("verify")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"not there: toy/database (never begun) {made.path('toy/database')}",
        "4 outputs: 3 right, 1 not there. Names and sizes of 9 files compared, and the checksums of 9 (100 %, 777 B).",
    ]


def test_every_planted_fault_is_found_with_the_step_to_rerun(made: Location, marin: Marin) -> None:
    data, tokens, model = (made.path(f"toy/{name}") for name in ("data", "tokens", "model"))
    write_bytes(join(tokens, CHUNK), bytes(reversed(range(256))))
    remove(join(data, "value.txt"))
    write_bytes(join(data, "train/ledger.json"), b"{ }")
    write_bytes(join(model, "left/behind.txt"), b"x")
    code, out, _ = marin("verify")
    assert code == 1
    lines = out.splitlines()
    assert f"wrong: toy/data: 1 resized, 1 missing; rerun step 'toy/data', {data}" in lines
    assert "    missing 'value.txt': expected 1 bytes, found nothing" in lines
    assert "    resized 'train/ledger.json': expected 2 bytes, found 3 bytes" in lines
    assert "    read by toy/tokens, toy/model: recompute them too if they have read the wrong files" in lines
    assert f"wrong: toy/tokens: 1 corrupted; rerun step 'toy/tokens', {tokens}" in lines
    assert any(line.startswith(f"    corrupted '{CHUNK}': expected crc32c:") for line in lines)
    assert f"wrong: toy/model: 1 extra; rerun step 'toy/model', {model}" in lines
    assert lines[-1].startswith("4 outputs: 3 wrong, 1 not there. Names and sizes of 9 files compared")


def test_the_commands_that_are_shown_make_the_output_anew(made: Location, marin: Marin) -> None:
    path = made.path("toy/tokens")
    remove(join(path, CHUNK))
    _, out, _ = marin("verify", "tokens")
    removing, making = (line.removeprefix("    $ ") for line in out.splitlines() if line.startswith("    $ "))
    assert shlex.split(making) == ["marin", "materialize", "--prefix", made.store.prefix, 'key:"toy/tokens"']
    if is_local(path):
        subprocess.run(removing, shell=True, check=True)
        made.make("toy/tokens")
        assert marin("verify", "tokens")[0] == 0
    else:
        assert removing == f"gcloud storage rm -r {path}"


def test_a_changed_control_file_is_not_data(made: Location, marin: Marin) -> None:
    path = made.path("toy/data")
    mark = {"format_version": 1, "attempt": 1, "outcome": "changed"}
    write_bytes(join(path, ".marin/attempts/1.json"), json.dumps(mark).encode())
    for name in (".marin/attempts/1.log", ".marin/shards/a.json"):
        write_bytes(join(path, name), b"changed")
    assert marin("verify")[0] == 0


def test_a_damaged_table_of_ids_is_a_finding_and_no_reason_to_compute_again(
    made: Location, marin: Marin, tmp_path: Path
) -> None:
    for shard in range(8):
        rows = [{"id": f"{shard}/{row}", "text": random.Random(row).randbytes(400).hex()} for row in range(300)]
        write_rows(str(tmp_path / f"{shard}.jsonl.zst"), rows)
    merge_ids(str(tmp_path))
    table, path = (tmp_path / TABLE).read_bytes(), made.path("toy/data")
    write_bytes(join(path, TABLE), table)
    assert marin("verify")[0] == 0
    write_bytes(join(path, TABLE), table[:-1] + bytes([table[-1] ^ 1]))
    code, out, _ = marin("verify")
    assert code == 1
    assert f"wrong: toy/data: 1 damaged; the data are right, {path}" in out.splitlines()
    assert f"damaged {TABLE!r}: expected a table of ids, found The table of ids {join(path, TABLE)!r} is damaged" in out
    assert marin("verify", "--sample", "0.5", "--seed", "1")[0] == 0  # its blocks are not read
    write_bytes(join(path, TABLE), b"something else")
    assert marin("verify", "--sample", "0.5", "--seed", "1")[0] == 1


def test_a_damaged_mark_is_a_finding_and_no_reason_to_compute_again(made: Location, marin: Marin) -> None:
    path = made.path("toy/data")
    write_bytes(join(path, ".marin/attempts/1.json"), b"changed")
    code, out, _ = marin("verify")
    assert code == 1
    lines = out.splitlines()
    assert f"wrong: toy/data: 1 damaged; the data are right, {path}" in lines
    [sentence] = [line for line in lines if line.startswith("    ")]
    assert sentence.startswith(
        "    damaged '.marin/attempts/1.json': expected the mark of an attempt, found The mark of"
    )
    assert f"'{path}/.marin/attempts/1.json' is not JSON" in sentence


def test_a_lost_status_of_a_complete_output_is_a_finding(made: Location, marin: Marin) -> None:
    path = made.path("toy/data")
    remove(join(path, ".executor_status"))
    code, out, _ = marin("verify")
    assert code == 1
    assert f"wrong: toy/data: 1 damaged; the data are right, {path}" in out.splitlines()
    assert f"    damaged '.executor_status': expected a status, as '{path}/.marin/manifest.json' is committed" in out


def test_a_damaged_control_file_takes_no_other_verification_away(made: Location, marin: Marin) -> None:
    put(join(made.path("toy/data"), ".executor_status"), b"NONSENSE")
    put(join(made.path("toy/tokens"), ".executor_info"), b"{")
    put(join(made.path("toy/model"), ".marin/manifest.json"), b"{")
    code, out, _ = marin("verify")
    assert code == 1
    for name in ("data", "tokens", "model"):
        assert f"wrong: toy/{name}: 1 unreadable; rerun step 'toy/{name}'" in out


def test_only_what_is_selected_is_looked_at(made: Location, marin: Marin) -> None:
    remove(join(made.path("toy/data"), "value.txt"))
    assert marin("verify", "model")[0] == 0
    assert marin("verify", "+model", "--experiment", made.name)[0] == 1


def test_an_output_that_is_being_made_is_not_there(location: Location, marin: Marin) -> None:
    put(join(location.path("toy/data"), ".executor_status"), b"FAILED")
    location.make("toy/database")
    code, out, _ = marin("verify", "data")
    assert code == 0
    assert f"not there: toy/data (FAILED) {location.path('toy/data')}" in out


def test_an_output_of_marins_is_not_verified_and_that_is_reported(location: Location, marin: Marin) -> None:
    put(join(location.path("toy/data"), ".executor_status"), b"SUCCESS")
    code, out, _ = marin("verify", "toy/data")
    assert code == 3
    assert "not verified: toy/data: no manifest exists to compare with, as Marin writes none" in out
    assert "1 outputs: 1 not verified." in out


def test_what_could_not_be_compared_never_leaves_the_exit_code_at_0(made: Location, marin: Marin) -> None:
    put(join(made.path("toy/database"), ".executor_status"), b"SUCCESS")
    assert marin("verify", "data", "database")[0] == 3
    code, out, _ = marin("verify", "--json", "data", "database")
    told = json.loads(out)
    assert (code, told["ok"], [each["state"] for each in told["outputs"]]) == (3, False, ["right", "not verified"])
    remove(join(made.path("toy/data"), "value.txt"))
    assert marin("verify", "data", "database")[0] == 1  # a finding weighs more


def test_a_sample_is_reproducible_and_its_share_is_reported(made: Location, marin: Marin) -> None:
    for name in ("data", "tokens", "model"):
        for file, data in FILES.items():
            write_bytes(join(made.path(f"toy/{name}"), file), bytes(len(data)))
    runs = [marin("verify", "--sample", "0.5", "--seed", str(seed)) for seed in (1, 1, 2, 3, 4)]
    assert {code for code, _, _ in runs} == {1}
    assert runs[0] == runs[1]
    if is_local(made.store.prefix):
        assert len(set(runs)) > 2
        expected = "the checksums of 6 (67 %, "
        assert expected in runs[0][1]
        assert runs[0][1].endswith(", --sample 0.5 --seed 1).\n")


def test_a_sample_without_a_seed_says_the_seed_that_it_took(made: Location, marin: Marin) -> None:
    _, out, _ = marin("verify", "--sample", "0.4")
    seed = out.rpartition("--seed ")[2].removesuffix(").\n")
    assert marin("verify", "--sample", "0.4", "--seed", seed)[1] == out


def test_the_bytes_are_read_if_requested(made: Location, marin: Marin) -> None:
    assert marin("verify", "--read")[0] == 0
    write_bytes(join(made.path("toy/data"), "value.txt"), b"2")
    assert marin("verify", "--read")[0] == 1


def test_a_script_is_reported_in_json(made: Location, marin: Marin) -> None:
    remove(join(made.path("toy/data"), "value.txt"))
    code, out, _ = marin("verify", "--json", "--seed", "3")
    told = json.loads(out)
    assert (code, told["ok"], told["seed"], told["prefix"]) == (1, False, 3, made.store.prefix)
    by_step = {output["step"]: output for output in told["outputs"]}
    assert by_step["toy/database"] == {
        "step": "toy/database",
        "path": made.path("toy/database"),
        "state": "not there",
        "status": None,
    }
    assert (by_step["toy/tokens"]["state"], by_step["toy/tokens"]["compared_files"]) == ("right", 3)
    assert (by_step["toy/data"]["rerun"], by_step["toy/data"]["readers"]) == ("toy/data", ["toy/tokens", "toy/model"])
    assert by_step["toy/data"]["findings"] == [
        {"name": "value.txt", "problem": "missing", "expected": "1 bytes", "found": "nothing"}
    ]


def test_a_prefix_that_was_moved_is_verified_where_it_is(made: Location, marin: Marin, tmp_path) -> None:
    if not is_local(made.store.prefix):
        return
    shutil.move(made.store.prefix, tmp_path / "moved")
    assert marin("verify", "--prefix", str(tmp_path / "moved"))[0] == 0
