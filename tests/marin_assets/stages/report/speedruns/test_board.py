"""The page of speedruns, and that of recipes."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from speedrun_entries import marins_folder, measured, store_training, training_rows, write_results

from marin_assets.stages.report.records import ReportError
from marin_assets.stages.report.speedruns.board import SpeedrunBoardConfig, write_board
from marin_assets.stages.report.speedruns.compare_recipes import CompareRecipesConfig, compare_recipes
from marin_assets.stages.report.speedruns.entry import MARINS_METRIC
from marin_assets.stages.report.speedruns.read import SpeedrunError
from marin_assets.step.values import unwrap_versioned_value

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></svg><iframe src='javascript:alert(1)'>",
    "{{ 7 * 7 }}{% raw %}",
    "\ud83d\x00\u202e" + "long" * 2000,
)
OWN_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "section", "div", "b", "span"),
    *("svg", "g", "polyline", "path", "circle", "rect", "line", "text", "p", "table", "tr", "th", "td", "br"),
    *("small", "em", "sub", "sup", "details", "summary", "ul", "li"),
}


class Tags(HTMLParser):
    """All tags and attributes of a page that are not the template's own."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.foreign += [tag] if tag not in OWN_TAGS else []
        self.foreign += [name for name, _ in attrs if name.startswith("on") or name in ("src", "href", "style")]


def foreign_parts(html: str) -> list[str]:
    tags = Tags()
    tags.feed(html)
    return tags.foreign


def board(output: Path, **fields: Any) -> tuple[dict[str, Any], str]:
    config = SpeedrunBoardConfig(output_path=str(output), **{"metric": MARINS_METRIC, **fields})
    result = write_board(unwrap_versioned_value(config))
    return result, (output / "speedruns.html").read_text()


def recipes(output: Path, **fields: Any) -> tuple[dict[str, Any], str]:
    result = compare_recipes(unwrap_versioned_value(CompareRecipesConfig(output_path=str(output), **fields)))
    return result, (output / "recipes.html").read_text()


def test_the_page_has_entries_of_steps_and_of_folders(tmp_path: Path) -> None:
    marins_folder(tmp_path / "theirs", runs=8)
    write_results(tmp_path / "prefix/speedruns/mine-abc123", [measured(1e18, 0.9)])
    result, html = board(
        tmp_path / "out",
        entries={"mine": f"{tmp_path}/prefix/speedruns/mine-abc123"},
        folders={"marin": f"{tmp_path}/theirs"},
        targets={"one": 1.0},
    )
    assert (result["runs"], result["labels"], result["front"]) == (9, 3, ["mine"])
    assert result["tracks"] == {"one": {"reached": 3, "best": None}}
    assert "marin/recipe_00/1_2b" in html
    assert html.count("single run") >= 3
    rows = [json.loads(line) for line in (tmp_path / "out/entries.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows if row["front"]] == ["mine"]


def test_equal_runs_are_one_row_with_both_names(tmp_path: Path) -> None:
    for name in ("splash", "splash/default_lr"):
        write_results(tmp_path / "runs" / name, [measured(1e18, 0.9)])
    result, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"})
    assert (result["runs"], result["equal"]) == (1, ["splash/default_lr"])
    assert "the same run: splash/default_lr" in html


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    write_results(tmp_path / "runs/right", [measured(1e18, 0.9)])
    write_results(tmp_path / "runs/wrong", [measured(1e18, 0.8, description=None)])
    write_results(tmp_path / "runs/other", [measured(1e18, 0.9, metric="eval/bpb", **{"eval/bpb": 0.9})])
    result, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"})
    assert (result["runs"], result["faulty"], result["other_metric"]) == (1, 1, 1)
    assert "wrong: &#39;description&#39; is null, expected a text." in html
    assert "other: its metric is &#39;eval/bpb&#39;" in html


def test_seeds_are_a_group_of_which_a_test_needs_three(tmp_path: Path) -> None:
    for label, flops, values in (("adam", 2e18, (0.9, 0.901, 0.902)), ("muon", 1e18, (0.9, 0.901))):
        for seed, value in enumerate(values):
            write_results(tmp_path / f"runs/{label}/{seed}", [measured(flops, value, label=label)])
    result, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"}, targets={"small": 0.95})
    assert result["tracks"]["small"] == {"reached": 2, "best": "adam"}
    assert "2 runs of 3" in html


def test_forecasts_need_five_sizes(tmp_path: Path) -> None:
    for label, sizes, base in (("many", 5, 0.7), ("few", 4, 0.8)):
        for size in range(sizes):
            flops = 1e18 * 4**size
            write_results(tmp_path / f"runs/{label}/{size}", [measured(flops, 300 * flops**-0.153 + base, label=label)])
    _, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"}, forecast_flops=1e22)
    assert "4 of 5 sizes" in html
    assert "300 C^-0.1530 + 0.7" in html
    assert f"{300 * 1e22**-0.153 + 0.7:.4g}" in html


def test_the_compute_that_is_saved_is_against_a_baseline_with_a_floor(tmp_path: Path) -> None:
    for size in range(3):
        flops = 1e18 * 4**size
        write_results(tmp_path / f"runs/adam/{size}", [measured(flops, 300 * flops**-0.153 + 0.7, label="adam")])
    for seed, noise in enumerate((-0.0001, 0.0, 0.0001)):
        loss = 300 * 8e18**-0.153 + 0.7 + noise
        write_results(tmp_path / f"runs/muon/{seed}", [measured(4e18, loss, label="muon")])
    one = measured(1e18, 300 * 3e18**-0.153 + 0.7, label="soap")
    write_results(tmp_path / "runs/soap", [one])
    write_results(tmp_path / "runs/soap2", [measured(2e18, 0.95, label="soap")])
    _, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"}, baseline="adam", floor=0.7)
    saved = html.partition('id="speedups"')[2]
    assert '<td class="right">3</td><td class="right">3 to 3</td>' in saved
    assert "single run" in saved
    _, html = recipes_of_board(tmp_path)
    assert "faster" in html.partition('id="speedups"')[2]


def recipes_of_board(tmp_path: Path) -> tuple[dict[str, Any], str]:
    """Trainings of two recipes, in three sizes; of the better one three seeds each."""
    paths: dict[str, list[str]] = {"adam": [], "muon": []}
    for label, gain, seeds in (("adam", 1.0, 1), ("muon", 2.0, 3)):
        for size in range(3):
            for seed in range(seeds):
                flops = 3e9 * 10 * 2048 * 4**size
                rows = training_rows(10)
                for row in rows[1:]:
                    row["throughput/total_gflops"] *= 4**size
                rows[-1]["eval/bpb"] = 3000 * (gain * flops) ** -0.25 + 0.7 + seed * 1e-4
                name = f"checkpoints/{label}/{size}/{seed}"
                paths[label].append(store_training(tmp_path / "prefix", name, rows=rows))
    return recipes(tmp_path / "recipes", recipes=paths, metric="eval/bpb", baseline="adam", floor=0.7)


def test_recipes_are_lines_of_sizes_with_the_intervals_of_their_seeds(tmp_path: Path) -> None:
    result, html = recipes_of_board(tmp_path)
    assert (result["recipes"], result["runs"], result["sizes"]) == (2, 12, {"adam": 3, "muon": 3})
    assert (result["single_runs"], result["best"]["recipe"]) == (3, "muon")
    assert html.count("<polyline") == 2
    assert html.count('class="bar"') == 3, "an interval for each size of three seeds"
    rows = [json.loads(line) for line in (tmp_path / "recipes/recipes.jsonl").read_text().splitlines()]
    assert [(row["recipe"], row["runs"], row["half_width"] is None) for row in rows] == [
        *[("adam", 1, True)] * 3,
        *[("muon", 3, False)] * 3,
    ]


def test_a_run_that_diverged_is_left_out_and_named(tmp_path: Path) -> None:
    right = store_training(tmp_path, "checkpoints/right")
    wrong = store_training(tmp_path, "checkpoints/wrong", result={"loss_end": None})
    result, html = recipes(tmp_path / "out", recipes={"adam": [right], "sgd": [wrong]})
    assert (result["runs"], result["not_finite"]) == (1, 1)
    assert "checkpoints/wrong, of sgd: its loss_end is not finite." in html
    with pytest.raises(ReportError, match="None of the 1 runs has a finite 'loss_end'"):
        recipes(tmp_path / "none", recipes={"sgd": [wrong]})


@pytest.mark.parametrize("words", HOSTILE)
def test_the_words_of_strangers_are_inert(words: str, tmp_path: Path) -> None:
    info = measured(1e18, 0.9, label=words, description=words, author={"name": words, "url": words}, notes=[words])
    write_results(tmp_path / "runs/a", [info])
    other = measured(2e18, 0.8, label=words)
    write_results(tmp_path / "runs/b", [other])
    write_results(tmp_path / "runs/c", [measured(2e18, 0.8, goal=words)])
    _, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"}, targets={words: 0.95}, title=words)
    assert foreign_parts(html) == []


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "has no entries, expected one at least"),
        ({"folders": {"": "runs"}, "goal": "low"}, "goal is 'low', expected"),
        ({"folders": {"": "runs"}, "baseline": "adam"}, "The baseline is 'adam' without a floor"),
        ({"folders": {"": "runs"}, "baseline": "adm", "floor": 0.1}, "The baseline is 'adm', expected"),
        ({"folders": {"": "runs"}, "floor": -1.0}, "floor is -1.0, expected"),
        ({"folders": {"": "runs"}, "forecast_flops": 0.0}, "forecast_flops is 0.0, expected"),
        ({"folders": {"": "runs"}, "goal": "max", "forecast_flops": 1e22}, "are of losses"),
        ({"folders": {"": "runs"}, "targets": {"a": float("nan")}}, "The target of the track 'a' is nan"),
        ({"folders": {"": "runs"}, "metric": "eval/bbp"}, "None of the 1 entries has the metric 'eval/bbp'"),
    ],
)
def test_a_mistake_is_one_sentence(fields: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_results(tmp_path / "runs/a", [measured(1e18, 0.9, label="adam")])
    with pytest.raises((ReportError, SpeedrunError), match=sentence):
        board(tmp_path / "out", **fields)


def test_one_run_is_a_page_with_a_number_on_its_axis(tmp_path: Path) -> None:
    write_results(tmp_path / "runs/a", [measured(9.87e17, 0.9)])
    result, html = board(tmp_path / "out", folders={"": f"{tmp_path}/runs"})
    assert result["front"] == ["a"]
    assert ">1e18</text>" in html


def test_a_training_twice_is_no_second_seed(tmp_path: Path) -> None:
    training = store_training(tmp_path)
    with pytest.raises(ReportError, match="The recipe 'adam' has a training twice"):
        recipes(tmp_path / "out", recipes={"adam": [training, training]})
