"""`marin sync`: Dagster shows what the store has, and no more; `--store` rebuilds the markers of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from location import Location

from marin_resources.storage.completion.markers import FOLDER, list_marks
from marin_resources.storage.files import remove, remove_folder, write_bytes
from marin_resources.storage.paths import is_local, join

Marin = Callable[..., tuple[int, str, str]]


def test_what_vanished_is_listed_and_then_shown_as_missing(made: Location, marin: Marin, dagster_home: Path) -> None:
    prefix = made.store.prefix
    assert marin("sync") == (0, f"Dagster knows 3 outputs more at {prefix}\n", "")
    remove_folder(made.path("toy/tokens"))
    code, out, _ = marin("sync", "--dry-run")
    shows = f"Dagster does not know 0 outputs at {prefix}, and shows 1 output that vanished\n"
    assert (code, out) == (0, f"toy/tokens (vanished)\n{shows}")
    assert marin("sync")[1] == f"Dagster knows 0 outputs more at {prefix}, and shows 1 output as missing\n"
    made.make("toy/tokens")
    assert marin("sync")[1] == f"Dagster knows 1 output more at {prefix}\n"


def test_the_markers_are_rebuilt_without_any_experiment(
    made: Location, marin: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, before = made.store.prefix, set(list_marks(made.store.prefix))
    assert len(before) == 3
    for mark in before:
        remove(join(prefix, FOLDER, mark.file))
    write_bytes(join(prefix, FOLDER, f"toy/gone-123456.{'a' * 16}.1.1.5.1700000000"), b"")
    monkeypatch.setattr("marin_assets.experiments.__path__", [])
    expected = f"3 outputs at {prefix}, 3 of them complete: 3 markers written, 1 removed\n"
    assert marin("sync", "--store") == (0, expected, "")
    assert set(list_marks(prefix)) == before


def test_store_is_about_all_outputs(made: Location, marin: Marin) -> None:
    code, _, err = marin("sync", "--store", "toy/data")
    assert (code, err) == (
        2,
        "Got --store with a selection, an experiment or --dry-run, expected it alone: it is about all outputs.\n",
    )


def test_without_the_right_to_write_it_is_one_sentence(
    made: Location, marin: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = made.store.prefix
    if not is_local(prefix):
        pytest.skip("the fake GCS lets everybody write")
    for mark in list_marks(prefix):
        remove(join(prefix, FOLDER, mark.file))

    def refuse(*given: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")  # root may write everywhere, whatever the mode of the folder

    monkeypatch.setattr(REFUSED, refuse)
    code, _, err = marin("sync", "--store")
    assert code == 1
    assert err.startswith(f"The markers below {prefix!r} cannot be rebuilt: ")
    assert err.endswith("`marin sync --store` needs the right to list, read and write there.\n")


REFUSED = "marin_resources.storage.index.rebuild.control.write"
