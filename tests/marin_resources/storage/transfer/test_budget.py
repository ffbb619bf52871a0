"""The mirror's budget: counted over all processes and threads of a step, before a byte moves."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mirrors
import pytest
from mirrors import Mirror

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.mirror import local_path_of, mirror_filesystem
from marin_resources.storage.paths import join
from marin_resources.storage.transfer import budget as budget_module
from marin_resources.storage.transfer.account import Account, charged_to, current_account
from marin_resources.storage.transfer.budget import Budget, TransferBudgetError, current_budget, enough_gb, spent
from marin_resources.storage.transfer.transfer_log import MAX_ENTRIES, Decision, Ledger, Moved, Owner, Reservation
from marin_resources.storage.transfer.transfer_log_files import LedgerInFile, LedgerInMemory

TESTS = Path(__file__).parents[3] / "support"


@pytest.fixture(params=["disk", "gcs"])
def mirror(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    return mirrors.declare(mirrors.fresh(request.param, tmp_path), monkeypatch)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    return mirrors.declare(mirrors.fresh("disk", tmp_path), monkeypatch)


@contextmanager
def process(mirror: Mirror, account: Account, verb: str, *paths: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the step, ready; it continues after a line on its standard input."""
    code = [sys.executable, "-m", "mirror_process", verb, *paths]
    env = {**os.environ, **mirror.variables(), **account.variables(), "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(code, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert says(started) == "ready"
            yield started
        finally:
            started.kill()


def says(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def go(started: subprocess.Popen[str]) -> None:
    assert started.stdin is not None
    started.stdin.write("\n")
    started.stdin.flush()


def all_of(starts: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=start) for start in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_what_exceeds_the_budget_fails_before_a_byte_moves(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", b"0" * 5000)
    account = mirrors.account(mirror, 4000)
    sentence = (
        r"^Step 'tokenized/x' needs 'mirror://raw/x' \(5 kB\) and its mirror budget is 4 kB\. "
        r"Pass budget_gb=5e-06, or run in near\.$"
    )
    with charged_to(account):
        for read in (mirror_filesystem().cat_file, lambda path: local_path_of(f"mirror://{path}")):
            with pytest.raises(TransferBudgetError, match=sentence):
                read("raw/x")
    assert mirror.files("here") == {}
    assert spent(account.output_path)["bytes"] == 0


def test_a_folder_is_reserved_as_a_whole_before_its_first_file_is_copied(mirror: Mirror) -> None:
    for number in range(5):
        mirror.put("near", f"raw/x/{number}", b"0" * 1000)
    with (
        charged_to(mirrors.account(mirror, 4999)),
        pytest.raises(TransferBudgetError, match=r"'mirror://raw/x' \(5 kB\)"),
    ):
        local_path_of("mirror://raw/x")
    assert mirror.files("here") == {}


def test_the_error_names_the_rest_of_the_budget_and_a_sufficient_one(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", b"0" * 3000)
    mirror.put("far", "raw/y", b"0" * 2500)
    with charged_to(mirrors.account(mirror, 4000)):
        mirror_filesystem().cat_file("raw/x")
        with pytest.raises(
            TransferBudgetError, match=r"1 kB are left of its mirror budget of 4 kB.*5\.5e-06, or run in far"
        ):
            mirror_filesystem().cat_file("raw/y")


@pytest.mark.parametrize(
    ("size_bytes", "gb"), [(2_140_000_000_000, "2200"), (10_000_000_001, "11"), (1_500_000_000, "1.5"), (0, "1")]
)
def test_a_sufficient_budget_is_a_round_number_of_gb(size_bytes: int, gb: str) -> None:
    assert enough_gb(size_bytes) == gb


def test_transfers_are_listed_by_path_and_region_with_their_price(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", b"0" * 3000)
    mirror.put("far", "raw/y", b"0" * 2500)
    account = mirrors.account(mirror, 10**6)
    with charged_to(account):
        mirror_filesystem().cat_file("raw/x")
        mirror_filesystem().cat_file("raw/y")
        mirror_filesystem().cat_file("raw/y")
    told = spent(account.output_path)
    assert told["bytes"] == 5500
    assert [(m["path"], m["from"], m["to"], m["files"], m["bytes"]) for m in told["transfers"]] == [
        ("mirror://raw/x", "near", "here", 1, 3000),
        ("mirror://raw/y", "far", "here", 1, 2500),
    ]
    ledger = LedgerInFile(account.output_path).read()
    assert [round(entry.dollars * 2**30) for entry in ledger.moved] == [30, 125]
    assert ledger.reserved == {}
    assert spent(join(mirror.here, "never/ran")) == {"bytes": 0, "dollars": 0, "transfers": []}


def test_a_process_of_no_step_has_a_budget_of_its_own(folders: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_MIRROR_BUDGET_GB", "0.000002")
    monkeypatch.setattr(budget_module, "_PROCESS", Budget(LedgerInMemory(), None))
    folders.put("near", "raw/x", b"0" * 1500)
    folders.put("near", "raw/y", b"0" * 1500)
    mirror_filesystem().cat_file("raw/x")
    with pytest.raises(
        TransferBudgetError, match=r"^This process needs 'mirror://raw/y' .* Set MARIN_MIRROR_BUDGET_GB=3e-06"
    ):
        mirror_filesystem().cat_file("raw/y")


@pytest.mark.parametrize("text", ["ten", "-1", "inf", "nan"])
def test_a_budget_that_is_not_a_number_is_one_sentence(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MARIN_MIRROR_BUDGET_GB", text)
    with pytest.raises(SettingError, match=f"MARIN_MIRROR_BUDGET_GB is '{text}', expected a number of GB"):
        Budget(LedgerInMemory(), None).reserve("mirror://x", 1, whole=True, source="near")


def test_the_account_of_a_step_is_that_of_the_block_alone(folders: Mirror) -> None:
    account = mirrors.account(folders, 7)
    assert current_account() is None
    with charged_to(account):
        assert current_account() == account
        with charged_to(None):
            assert current_account() == account
    assert current_account() is None
    assert os.environ["MARIN_PREFIX"] == folders.here


def test_threads_share_the_budget(mirror: Mirror) -> None:
    for number in range(8):
        mirror.put("near", f"raw/{number}", b"0" * 1000)
    account = mirrors.account(mirror, 3999)
    refused: list[str] = []

    def read(number: int) -> None:
        try:
            mirror_filesystem().cat_file(f"raw/{number}")
        except TransferBudgetError as error:
            refused.append(str(error))

    with charged_to(account):
        all_of([lambda n=n: read(n) for n in range(8)])  # type: ignore[misc]
    assert len(refused) == 5
    assert spent(account.output_path)["bytes"] == 3000
    assert len([name for name in mirror.files("here") if name.startswith("raw/")]) == 3


def test_processes_share_the_budget(mirror: Mirror) -> None:
    for number in range(8):
        mirror.put("near", f"raw/{number}", b"0" * 1000)
    account, names = mirrors.account(mirror, 5999), [f"raw/{number}" for number in range(8)]
    with process(mirror, account, "read", *names) as one, process(mirror, account, "read", *reversed(names)) as other:
        for started in (one, other):
            go(started)
        told = [started.communicate(timeout=100)[0].splitlines() for started in (one, other)]
    assert spent(account.output_path)["bytes"] == 5000
    assert len([name for name in mirror.files("here") if name.startswith("raw/")]) == 5
    for lines in told:
        assert len([line for line in lines if " read 1000" in line]) == 5
        assert len([line for line in lines if " refused Step 'tokenized/x' needs " in line]) == 3


def test_processes_that_read_the_same_at_once_are_charged_once(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", b"0" * 1000)
    account = mirrors.account(mirror, 1000)
    with process(mirror, account, "read", "raw/x") as one, process(mirror, account, "tree", "raw") as other:
        for started in (one, other):
            go(started)
        for started in (one, other):
            assert " read " in says(started)
    assert spent(account.output_path)["bytes"] == 1000


def test_a_killed_processs_reservation_is_returned(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", b"0" * 1000)
    account = mirrors.account(mirror, 1500)
    with process(mirror, account, "reserve", "mirror://raw/x") as killed:
        go(killed)
        assert says(killed) == "reserved"
        killed.kill()
        killed.wait()
    assert LedgerInFile(account.output_path).read().reserved_bytes == 1000
    with charged_to(account):
        assert len(mirror_filesystem().cat_file("raw/x")) == 1000
    assert spent(account.output_path)["bytes"] == 1000
    assert LedgerInFile(account.output_path).read().reserved == {}


def test_a_reservation_of_another_machine_without_a_heartbeat_is_returned(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "TTL_S", 0.3)
    mirror.put("near", "raw/x", b"0" * 1000)
    account = mirrors.account(mirror, 1500)
    elsewhere = Owner(id="other", machine="another machine", pid=1, started=0.0)
    dead = dataclasses.replace(wanted("dead", 1000), owner=elsewhere, attempt=account.attempt)
    LedgerInFile(account.output_path).change(lambda ledger: ledger.reserve(dead, 1500))
    with charged_to(account):
        assert len(mirror_filesystem().cat_file("raw/x")) == 1000


def test_a_living_heartbeat_keeps_its_reservation_beyond_its_time_to_live(
    folders: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "TTL_S", 0.4)
    account = mirrors.account(folders, 1500)
    done, order = threading.Event(), []
    with charged_to(account):
        first = current_budget().reserve("mirror://a", 1000, whole=True, source="near")
    other = Budget(LedgerInFile(account.output_path), account)

    def second() -> None:
        with other.reserve("mirror://b", 1000, whole=True, source="near"):
            order.append("second")
        done.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not done.wait(1.5)
    order.append("first ends")
    with first:
        pass
    assert done.wait(30)
    thread.join()
    assert order == ["first ends", "second"]


def test_a_returned_reservation_stops_its_transfer(folders: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "TTL_S", 0.3)
    account = mirrors.account(folders, 1500)
    ledger = LedgerInFile(account.output_path)
    with Budget(ledger, account).reserve("mirror://a", 1000, whole=True, source="near") as transfer:
        ledger.change(lambda it: it.reserved.clear())
        lost = threading.Event()
        while not lost.wait(0.05) and not transfer.lost:
            pass
        with pytest.raises(TransferBudgetError, match="counted as dead"):
            transfer.check()


def test_an_earlier_attempts_reservations_do_not_count_and_its_moved_bytes_do(mirror: Mirror) -> None:
    mirror.put("near", "raw/x", b"0" * 1000)
    account = mirrors.account(mirror, 1500)
    elsewhere = Owner(id="other", machine="another machine", pid=1, started=0.0)
    ledger = LedgerInFile(account.output_path)
    first = dataclasses.replace(wanted("first", 1000), owner=elsewhere, attempt=1)
    ledger.change(lambda it: it.reserve(first, 1500))
    ledger.change(lambda it: it.settle("first", [move("mirror://raw/y", 400)], done=False))
    with charged_to(dataclasses.replace(account, attempt=2)):
        assert len(mirror_filesystem().cat_file("raw/x")) == 1000
    assert spent(account.output_path)["bytes"] == 1400


def test_a_long_transfer_is_entered_while_it_runs(folders: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "SETTLE_EVERY_S", 0.0)
    account = mirrors.account(folders, 1000)
    ledger = LedgerInFile(account.output_path)
    with Budget(ledger, account).reserve("mirror://a", 1000, whole=True, source="near") as transfer:
        transfer.moved(move("mirror://a", 300))
        assert (ledger.read().moved_bytes, ledger.read().reserved_bytes) == (300, 700)
    assert (ledger.read().moved_bytes, ledger.read().reserved_bytes) == (300, 0)


def test_many_files_are_listed_as_their_folders() -> None:
    ledger = Ledger()
    ledger.settle("r", [move(f"mirror://raw/{n % 3}/{n}", 10) for n in range(MAX_ENTRIES + 1)], done=True)
    assert sorted(entry.path for entry in ledger.moved) == [f"mirror://raw/{n}" for n in range(3)]
    assert ledger.moved_bytes == 10 * (MAX_ENTRIES + 1)
    assert sum(entry.files for entry in ledger.moved) == MAX_ENTRIES + 1


def test_a_transfer_of_the_same_files_is_waited_for_even_if_the_budget_is_too_small() -> None:
    ledger = Ledger()
    assert ledger.reserve(wanted("a", 600, "mirror://raw/x"), 1000) is Decision.GRANTED
    assert ledger.reserve(wanted("b", 2000, "mirror://raw/x/1"), 1000) is Decision.WAIT
    assert ledger.reserve(wanted("c", 2000, "mirror://raw/xy"), 1000) is Decision.REFUSED
    assert ledger.reserve(wanted("d", 500, "mirror://raw/xy"), 1000) is Decision.WAIT
    assert ledger.reserve(wanted("e", 400, "mirror://raw/x", whole=False), 1000) is Decision.GRANTED


def test_a_ledger_of_a_newer_format_is_refused() -> None:
    text = json.dumps({**json.loads(Ledger().to_json()), "format_version": 2})
    with pytest.raises(ValueError, match="has format version 2 and this software knows up to 1"):
        Ledger.from_json(text, "transfers.json")


def test_a_write_whose_response_was_lost_is_not_entered_twice(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    from marin_resources.storage.control import control
    from marin_resources.storage.control.protocol import UnavailableError

    account = mirrors.account(mirror, 1000)
    ledger, write = LedgerInFile(account.output_path), control.write
    lost = iter([True, False])

    def written_and_not_heard_of(path: str, data: bytes, *, expected: str | None) -> str:
        generation = write(path, data, expected=expected)
        if next(lost):
            raise UnavailableError("no answer")
        return generation

    monkeypatch.setattr(control, "write", written_and_not_heard_of)
    ledger.change(lambda it: it.settle("r", [move("mirror://a", 300)], done=True))
    assert ledger.read().moved_bytes == 300


def wanted(reservation_id: str, size_bytes: int, path: str = "mirror://raw/x", whole: bool = True) -> Reservation:
    from marin_resources.storage.transfer.budget import current_owner

    return Reservation(id=reservation_id, path=path, bytes=size_bytes, whole=whole, owner=current_owner(), attempt=1)


def move(path: str, size_bytes: int) -> Moved:
    return Moved(path=path, origin="near", to="here", bytes=size_bytes, dollars=0.0)
