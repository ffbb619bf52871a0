"""What the how-to promises: one file and one test, and the stage is there, on every road."""

import json
from pathlib import Path

import pytest
from pages import ROOT, Block, Checkout, blocks

PAGE = ROOT / "docs/how-to/add-a-stage.md"


@pytest.fixture(scope="module")
def shown() -> dict[str, Block]:
    """The files that the page shows, by path."""
    return {block.path: block for block in blocks(PAGE) if block.path is not None}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, shown: dict[str, Block]) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    for block in shown.values():
        checkout.save(block)
    return checkout


def test_it_takes_a_stage_and_a_test_and_an_experiment_that_uses_it(shown: dict[str, Block]) -> None:
    assert sorted(shown) == [
        "marin_assets/experiments/common_words.py",
        "marin_assets/stages/transform/common_words.py",
        "tests/marin_assets/stages/transform/test_common_words.py",
    ]


@pytest.mark.long
def test_its_test_passes(checkout: Checkout) -> None:
    done = checkout.shell("python -m pytest -q tests/marin_assets/stages/transform/test_common_words.py")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.long
def test_it_runs_at_the_end_of_its_experiment(checkout: Checkout) -> None:
    done = checkout.shell("python -m marin_assets.experiments.common_words")
    assert done.returncode == 0, done.stdout
    [output] = checkout.folder.glob("outputs/words/wordy_pages-??????")
    record = json.loads((output / ".executor_info").read_text())
    assert (output / ".executor_status").read_text() == "SUCCESS"
    assert record["result"]["documents"] >= 100
    assert len(json.loads((output / "words.json").read_text())) == 100


def test_it_is_an_asset_with_its_checks(checkout: Checkout) -> None:
    query = (
        "from marin_assets.definitions import defs; import dagster as dg; "
        "asset = defs.resolve_assets_def(dg.AssetKey(['words', 'wordy_pages'])); "
        "print(sorted(check.name for check in asset.check_specs))"
    )
    done = checkout.shell(f'python -c "{query}"')
    assert "['complete', 'documents', 'top_share']" in done.stdout


def test_it_keeps_to_its_layer(checkout: Checkout, shown: dict[str, Block]) -> None:
    done = checkout.shell(f"ruff check {' '.join(shown)} && ruff format --check {' '.join(shown)} && lint-imports")
    assert done.returncode == 0, done.stdout


def test_its_files_are_short(shown: dict[str, Block]) -> None:
    assert all(len(Path(path).name) and block.text.count("\n") < 100 for path, block in shown.items())
