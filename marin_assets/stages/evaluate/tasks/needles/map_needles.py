"""Map the answers to questions about long contexts: the accuracy by length and by depth of the needle.

In:  an evaluation (`samples.jsonl`), and the questions that write_needles wrote.
Out: `needles.csv`, a row for each form, length and depth; `plots/needles.png`, a map for each form.

Wilson's interval is that of 95 % (Wilson 1927, J. Am. Stat. Assoc. 22): it is right for few questions, and for
accuracies of 0 and 1. Of a form with several values for a question, which is right in part, it is an approximation.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from marin_assets.stages.evaluate.tasks.needles.forms import FORMS
from marin_assets.stages.evaluate.tasks.needles.haystack import NeedleError
from marin_assets.step.values import THIS_OUTPUT_PATH
from marin_resources.storage.files import exists, list_files, read_bytes, write_bytes
from marin_resources.storage.paths import join

KINDS = ("png",)

SAMPLES, TABLE, PLOT = "samples.jsonl", "needles.csv", "plots/needles.png"
COLUMNS = ("form", "length", "depth", "questions", "accuracy", "lower95", "upper95")
Z95 = 1.96
Cells: TypeAlias = Mapping[tuple[str, int, float | None], Sequence[float]]
"""(Form, length, depth) -> the scores of its questions."""


@dataclass(frozen=True, kw_only=True)
class MapNeedlesConfig:
    evaluation_path: str
    """Output of evaluate_with_lm_eval."""
    needles_path: str
    """Output of write_needles, whose tasks were evaluated."""
    output_path: str = THIS_OUTPUT_PATH


def map_needles(config: MapNeedlesConfig) -> dict[str, Any]:
    """Write the accuracy of each form by length and depth.

    Returns questions, accuracy (form -> length -> accuracy over its depths), worst (the cell with the lowest accuracy:
    form, length, depth, accuracy) and plots. Raises NeedleError for an evaluation without such questions.
    """
    cells = read_cells(config)
    rows = [_row(key, scores) for key, scores in sorted(cells.items(), key=_in_order)]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(join(config.output_path, TABLE), text.getvalue().encode())
    write_bytes(join(config.output_path, PLOT), draw(cells))
    by_length: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (form, length, _), scores in sorted(cells.items(), key=_in_order):
        by_length[form][str(length)] += scores
    worst = min(rows, key=lambda row: row["accuracy"])
    return {
        "questions": sum(map(len, cells.values())),
        "accuracy": {
            form: {length: _mean(of) for length, of in lengths.items()} for form, lengths in by_length.items()
        },
        "worst": {name: worst[name] for name in ("form", "length", "depth", "accuracy")},
        "plots": [PLOT],
    }


def read_cells(config: MapNeedlesConfig) -> Cells:
    path = join(config.evaluation_path, SAMPLES)
    if not exists(path):
        raise NeedleError(f"{config.evaluation_path!r} has no {SAMPLES!r}, expected an evaluation. Pass its output.")
    questions = {
        name.removesuffix(".jsonl"): [json.loads(line) for line in read_bytes(file).splitlines()]
        for file in list_files(config.needles_path)
        if (name := file.rpartition("/")[2]).startswith("needle_") and name.endswith(".jsonl")
    }
    cells: dict[tuple[str, int, float | None], list[float]] = defaultdict(list)
    for line in read_bytes(path).splitlines():
        row = json.loads(line)
        task = str(row["task"]).rpartition("/")[2]  # a group's alias may stand before it
        if task in questions:
            if row["doc_id"] >= len(questions[task]):
                raise NeedleError(
                    f"The task {task!r} has the question {row['doc_id']} in {path!r}, and {len(questions[task])} in "
                    f"{config.needles_path!r}, expected those that were evaluated. Pass the step that wrote them."
                )
            question = questions[task][row["doc_id"]]
            form = task.removeprefix("needle_").rpartition("_")[0]
            cells[form, question["length"], question["depth"]].append(float(row["acc"]))
    if not cells:
        raise NeedleError(
            f"{path!r} has no answer to a question of {config.needles_path!r}, expected the task 'needles' among the "
            "tasks of the evaluation."
        )
    return cells


def _row(key: tuple[str, int, float | None], scores: Sequence[float]) -> dict[str, Any]:
    form, length, depth = key
    lower, upper = wilson(_mean(scores), len(scores))
    of = {"questions": len(scores), "accuracy": _mean(scores), "lower95": lower, "upper95": upper}
    return {"form": form, "length": length, "depth": depth, **of}


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the bounds of Wilson's 95 % interval of a share of `count` questions, at least one."""
    scale = 1 + Z95**2 / count
    middle = (share + Z95**2 / (2 * count)) / scale
    half = Z95 * math.sqrt(share * (1 - share) / count + Z95**2 / (4 * count**2)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores)


def _in_order(item: tuple[tuple[str, int, float | None], Any]) -> tuple[int, int, float]:
    form, length, depth = item[0]
    return FORMS.index(form), length, -1.0 if depth is None else depth


def draw(cells: Cells) -> bytes:
    """Draw a PNG: a map for each form, lengths to the right and depths downwards, with the accuracy in each cell."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    forms = [form for form in FORMS if any(form == key[0] for key in cells)]
    lengths = sorted({length for _, length, _ in cells})
    by_form = {
        form: sorted({depth for name, _, depth in cells if name == form}, key=lambda depth: depth or 0.0)
        for form in forms
    }
    rows = [len(depths) + 2 for depths in by_form.values()]  # two for the title and the labels
    figure = Figure(figsize=(3 + 0.9 * len(lengths), 0.35 * sum(rows) + 0.5), dpi=120, layout="constrained")
    subplots = figure.subplots(len(forms), squeeze=False, height_ratios=rows)[:, 0]
    for axes, (form, depths) in zip(subplots, by_form.items(), strict=True):
        shares = [[_share(cells, form, length, depth) for length in lengths] for depth in depths]
        axes.imshow(shares, vmin=0, vmax=1.4, cmap="YlGn", aspect="auto")
        for row, of in enumerate(shares):
            for column, share in enumerate(of):
                axes.text(column, row, "–" if math.isnan(share) else f"{share:.2f}", ha="center", va="center")
        axes.set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths])
        axes.set_yticks(range(len(depths)), ["any" if depth is None else f"{depth:.0%}" for depth in depths])
        axes.set(title=form, ylabel="depth")
    axes.set_xlabel("tokens of context")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def _share(cells: Cells, form: str, length: int, depth: float | None) -> float:
    scores = cells.get((form, length, depth), ())
    return _mean(scores) if scores else math.nan
