"""Report a chain of steps on one self-contained HTML page: no network, no script, no other file.

In:  the outputs of the steps, each with a label: their records (`.executor_info`), and if present, the training metrics
     (`metrics.jsonl`), the answered questions (`samples.jsonl`), the generated texts (`generated.jsonl`), the
     waterfalls of consolidations (`waterfall.json`, `rejected.json`) and the plots that their results name.
Out: `report.html`: the losses, accuracies and kept shares, the loss curve, scores with their confidence intervals,
     generated texts; then the DAG, the expectations and whether each held, sample questions, counts, times and sizes
     of each step, what they cost, waterfalls with rejected documents to read, and provenance.

It looks as the page of an experiment does, by the same templates, and can be published as that: paths, users, hosts and
addresses are removed, those of the machines in the records.

Every number on the page is tagged with its step and its place in the record. The finished page is parsed and compared
with the records, which are read again: `mismatches` counts the numbers that differ.
"""

from __future__ import annotations

import base64
import itertools
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marin_assets.stages.report.charts import draw_losses, draw_score_bars
from marin_assets.stages.report.dag import DagNode, draw_dag
from marin_assets.stages.report.numbers import ALL, check_numbers, shown_numbers, tagged
from marin_assets.stages.report.page_rows import details_of, rows_of
from marin_assets.stages.report.provenance import provenance_of
from marin_assets.stages.report.records import ReportError, StepRecord, parents_of, read_records
from marin_assets.stages.report.timeline import draw_tries
from marin_assets.stages.report.waterfall import rejected_documents, waterfall_charts
from marin_assets.step.expectation import Expectation
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.scrub.png import without_texts
from marin_resources.scrub.private_values import recorded_values
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.files import exists, read_bytes, size_of, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

AMOUNTS = {"spent.wall_s": "time", "spent.cpu_s": "CPU time", "spent.device_s": "device time"}
"""Place in a record -> what it is. Attempts that failed are in it."""

KINDS = ("html",)

REPORT = "report.html"
METRICS, SAMPLES, GENERATED = "metrics.jsonl", "samples.jsonl", "generated.jsonl"
TEMPLATES = Path(__file__).parent / "templates"
"""`report.html.j2`, and its parts, which the page of an experiment has too."""
MAX_PLOT_BYTES = 500_000
MAX_TEXTS = 10
"""Generated texts of a step; its output has all of them."""

if TYPE_CHECKING:
    import jinja2

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    inputs: dict[str, str]
    """Label on the page -> output path of the step."""
    output_path: str = THIS_OUTPUT_PATH
    title: str = versioned("Report")
    expectations: dict[str, list[Expectation]] = field(default_factory=dict)
    """Label -> expectations of the step's result."""
    sample_questions: int = versioned(6)
    """Questions to show of each evaluation."""
    sample_rejected: int = versioned(3)
    """Rejected documents to show of each reason."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A number of a step, or two from start to end, at the top of the page."""

    name: str
    places: tuple[str, ...]
    """In the record."""
    chance: str = ""
    """Place of the number that a model without knowledge would have; empty without one."""
    label: str = ""


OUTCOMES = (
    Outcome(name="loss", places=("result.loss_start", "result.loss_end")),
    Outcome(name="accuracy", places=("result.acc",), chance="result.chance"),
    Outcome(name="bits per byte", places=("result.bits_per_byte",)),
    Outcome(name="documents kept", places=("result.kept_share",)),
)
MAX_OUTCOMES = 4


@dataclass(frozen=True, kw_only=True)
class CheckedExpectation:
    """One expectation and whether it held."""

    label: str
    expectation: Expectation
    held: bool

    def row(self, step: StepRecord) -> dict[str, Any]:
        """One row of the summary."""
        actual = self.expectation.value_in(step.result)
        return {"step": self.label, "held": self.held, "found": actual, "expected": self.expectation.describe()}


def write_report(config: ReportConfig) -> dict[str, Any]:
    """Write one page about a whole experiment: its steps, counts, loss, scores and expectations.

    Returns steps, numbers (on the page), mismatches (numbers that differ from the records), bytes, report,
    expectations, expectations_failed, and summary: of each expectation the step, what was expected, what was found, and
    whether it held. Raises ReportError for a step without a record.
    """
    records = read_records(config.inputs)
    checked = check_expectations(config.expectations, records)
    scrub = Scrubber(recorded_values(step.record for step in records.values()))
    page = render(config, records, checked, scrub)
    numbers, wrong = check_numbers(page, read_records(config.inputs))
    html = scrub.page(page)
    if shown_numbers(html) != shown_numbers(page):
        wrong.append("numbers of the page were taken for addresses, and removed")
    for sentence in wrong:
        log.error("The report is wrong: %s", sentence)
    write_bytes(join(config.output_path, REPORT), html.encode())
    return {
        "steps": len(records),
        "numbers": numbers,
        "mismatches": len(wrong),
        "bytes": len(html.encode()),
        "report": REPORT,
        "expectations": len(checked),
        "expectations_failed": sum(not expectation.held for expectation in checked),
        "summary": [expectation.row(records[expectation.label]) for expectation in checked],
    }


def check_expectations(
    expectations: Mapping[str, Sequence[Expectation]], records: Mapping[str, StepRecord]
) -> list[CheckedExpectation]:
    """Check all expectations, in the order of the records. Raises ReportError for a label that is no input."""
    for label in expectations:
        if label not in records:
            raise ReportError(f"Expectations name {label!r}, {expected_one_of(label, sorted(records), 'inputs')}")
    return [
        CheckedExpectation(label=label, expectation=expectation, held=expectation.holds(step.result))
        for label, step in records.items()
        for expectation in expectations.get(label, [])
    ]


def render(
    config: ReportConfig, records: Mapping[str, StepRecord], checked: Sequence[CheckedExpectation], scrub: Scrubber
) -> str:
    """Return the page as HTML, which is not scrubbed as a whole yet."""
    from markupsafe import Markup

    def number(*place: str) -> str:
        return Markup(tagged(records, *place))

    states = {
        label: state_of([expectation for expectation in checked if expectation.label == label]) for label in records
    }
    return template("report.html.j2").render(
        title=config.title,
        records=records,
        states=states,
        dag=Markup(draw_dag([node_of(step, records, states[label]) for label, step in records.items()])),
        outcomes=outcomes_of(records),
        best={label: best for label, step in records.items() if isinstance(best := step.result.get("best"), str)},
        number=number,
        ALL=ALL,
        is_report=True,
        expectations=[expectation_row(expectation, number) for expectation in checked],
        rows=rows_of(records, states, number),
        in_detail=records,
        more_rows=0,
        details={label: details_of(step) for label, step in records.items()},
        parents={label: parents_of(step, records) for label, step in records.items()},
        amounts=AMOUNTS,
        gaps=list(_gaps_of(records)),
        waterfalls=[(labels, Markup(chart)) for labels, chart in waterfall_charts(records)],
        rejected={label: rejected_documents(step, config.sample_rejected) for label, step in records.items()},
        timelines={label: Markup(draw_tries(tries)) for label, step in records.items() if (tries := step.tries)},
        losses={label: Markup(chart) for label, chart in loss_charts(records).items()},
        scores={
            label: [(task, Markup(chart)) for task, chart in score_charts(step, records)]
            for label, step in records.items()
        },
        questions={label: sample_questions(step, config.sample_questions) for label, step in records.items()},
        generated={label: generated_texts(step) for label, step in records.items()},
        plots={label: _readable_plots(step) for label, step in records.items()},
        configs={label: json.dumps(scrub.json(step.record.config), indent=2) for label, step in records.items()},
        provenance=provenance_of((label, step.record) for label, step in records.items()),
    )


def expectation_row(checked: CheckedExpectation, number: Callable[[str, str], str]) -> dict[str, Any]:
    """A row of the table of expectations."""
    return {
        "step": checked.label,
        "link": f"#step-{checked.label}",
        "expected": checked.expectation.describe(),
        "description": checked.expectation.description,
        "shown": number(checked.label, f"result.{checked.expectation.metric}"),
        "held": checked.held,
    }


def template(name: str, *folders: Path) -> jinja2.Template:
    """The template of this name in one of these folders. Its parts may also be those of the report, `TEMPLATES`."""
    import jinja2  # late, for its weight

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)


def outcomes_of(records: Mapping[str, StepRecord]) -> list[Outcome]:
    """Return what the page begins with: the losses of the trainings, the accuracies, and the shares that were kept.

    Of one kind at most MAX_OUTCOMES, those of the last steps.
    """
    shown: list[Outcome] = []
    for kind in OUTCOMES:
        present = [label for label, step in records.items() if all(is_number(step.value(p)) for p in kind.places)]
        for label in present[-MAX_OUTCOMES:]:
            chance = kind.chance if is_number(records[label].value(kind.chance)) else ""
            shown.append(replace(kind, label=label, chance=chance))
    return shown


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def state_of(checked: Sequence[CheckedExpectation]) -> str:
    return "plain" if not checked else "held" if all(expectation.held for expectation in checked) else "failed"


def node_of(step: StepRecord, records: Mapping[str, StepRecord], state: str) -> DagNode:
    return DagNode(
        key=step.label,
        name=step.name,
        title=step.label,
        subtitle=step.version or "override",
        link=f"#step-{step.label}",
        state=state,
        parents=tuple(parents_of(step, records)),
    )


def loss_charts(records: Mapping[str, StepRecord]) -> dict[str, str]:
    charts = {
        label: draw_losses(step.rows(METRICS), step.exported_metric("eval/loss"))
        for label, step in records.items()
        if step.has(METRICS)
    }
    return {label: chart for label, chart in charts.items() if chart}


def score_charts(step: StepRecord, records: Mapping[str, StepRecord]) -> list[tuple[str, str]]:
    """Return (task, chart) of each task of an evaluation that has accuracies."""
    charts = []
    for task, scores in (step.result.get("scores") or {}).items():
        place = f"result.scores.{task}"
        chart = draw_score_bars(task, scores, partial(number_in_chart, records, step.label, place))
        charts += [(task, chart)] if chart else []
    return charts


def number_in_chart(records: Mapping[str, StepRecord], label: str, place: str, metric: str, attributes: str) -> str:
    return tagged(records, label, f"{place}.{metric}", tag="text", attributes=attributes)


def sample_questions(step: StepRecord, count: int) -> list[dict[str, Any]]:
    """Return the first multiple-choice questions: the true choice, the picked one, and the likelihood of each."""
    if not step.has(SAMPLES):
        return []
    rows = (row for row in step.rows(SAMPLES) if len(row.get("choices", ())) > 1)
    return [question_of(row) for row in itertools.islice(rows, count)]


def question_of(row: Mapping[str, Any]) -> dict[str, Any]:
    prior = row.get("unconditional_loglikelihoods", [0.0] * len(row["choices"]))
    gained = [given - without for given, without in zip(row["loglikelihoods"], prior, strict=True)]
    likelihoods = [math.exp(gain - max(gained)) for gain in gained]
    pick = row.get("pick_mutual_info", row["pick"])
    choices = [
        {"text": text, "true": i == row["target"], "picked": i == pick, "width": round(100 * likelihoods[i], 1)}
        for i, text in enumerate(row["choices"])
    ]
    context = re.sub(r"\n\s*\n", "\n", row["context"])
    return {"context": context, "choices": choices, "right": pick == row["target"]}


def generated_texts(step: StepRecord) -> list[dict[str, Any]]:
    """Return the first generated texts, as {prompt, text}."""
    return list(itertools.islice(step.rows(GENERATED), MAX_TEXTS)) if step.has(GENERATED) else []


def plots_of(step: StepRecord) -> list[tuple[str, str]]:
    """Return name and data URL of the plots that the page does not draw itself, without the texts inside the files.

    Raises ValueError for one that is damaged."""
    if step.has(METRICS) or step.has(SAMPLES):
        return []
    plots = []
    for name in step.result.get("plots") or []:
        if not isinstance(name, str) or not is_inside(name):
            continue
        path = join(step.path, name)
        if name.endswith(".png") and exists(path) and size_of(path) <= MAX_PLOT_BYTES:
            plots.append((name, f"data:image/png;base64,{base64.b64encode(without_texts(read_bytes(path))).decode()}"))
    return plots


def _readable_plots(step: StepRecord) -> list[tuple[str, str]]:
    try:
        return plots_of(step)
    except ValueError as error:
        log.warning("The plots of %r are left out: %s.", step.label, error)
        return []


def is_inside(name: str) -> bool:
    """Whether the name of a file in a record leads to a file of the output itself."""
    return "://" not in name and "\\" not in name and not {"", ".", ".."}.intersection(name.split("/"))


def _gaps_of(records: Mapping[str, StepRecord]) -> Iterator[str]:
    """Sentences about the gaps of the sums: amounts that a record lacks, and inputs that the page does not have."""
    count = len(records)
    for place, name in AMOUNTS.items():
        silent = sum(step.value(place) is None for step in records.values())
        if silent:
            yield f"{silent} of {count} steps {'has' if silent == 1 else 'have'} no record of {name}."
    killed = sum(step.value("spent.unknown_attempts") or 0 for step in records.values())
    if killed:
        yield f"{killed} attempt{'s were' if killed != 1 else ' was'} killed, and recorded no cost."
    shown = {step.path for step in records.values()}
    outside = {path for step in records.values() for path in step.dependencies} - shown
    if outside:
        yield f"{len(outside)} input{'s are' if len(outside) != 1 else ' is'} not on this page, and in no sum."
