"""Write an experiment as one HTML page: no script, no network, no other file, and nothing private.

In:  the steps, with the states of their outputs, and the store, of which records, logs and plots are read.
Out: the page. Its sections are: sums; what failed or runs; whether it learnt; the DAG; what changed; the steps; sources
     and licences; details of steps; provenance.

Curves, scores and tables are those of the report of a finished experiment: `marin_assets/stages/report`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marin_assets.experiment_page.attention import attention_of
from marin_assets.experiment_page.changes import changes_of
from marin_assets.experiment_page.links import links_of
from marin_assets.experiment_page.page_steps import PageSteps
from marin_assets.experiment_page.picture import picture_of
from marin_assets.experiment_page.provenance import commits_of, provenance_of
from marin_assets.experiment_page.readings import Readings, read_steps, steps_in_detail
from marin_assets.experiment_page.rows import detail_of, row_of
from marin_assets.experiment_page.scrub.private_values import private_values
from marin_assets.experiment_page.scrub.scrubber import Scrubber
from marin_assets.experiment_page.sums import NAMES, counts_of, describe_amount, sums_of
from marin_assets.plan.record_facts.origins import total_of_origins
from marin_assets.stages.report.numbers import tagged
from marin_assets.stages.report.report import details_of, outcomes_of, template
from marin_assets.step.origin import together
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.usage.cost_estimate import price_list

MOST_ROWS = 3_000
"""Steps in the table."""
TEMPLATE = "page.html.j2"


def page_of(experiment: PageSteps) -> str:
    """The page. Raises SettingError for invalid prices, UnavailableError."""
    scrub = Scrubber(_private(experiment))
    return scrub.page(_render(experiment, scrub))


def _private(experiment: PageSteps) -> Any:
    records = [record for step in experiment.steps for record in step.records]
    holders = [seen.holder for step in experiment.steps for seen in step.outputs.values() if seen.holder is not None]
    places = {str(place) for record in records for place in (record.prefix, record.data_prefix) if place}
    return private_values(
        [experiment.prefix, *places],
        users=[*experiment.users, *{str(record.user) for record in records if record.user}],
        hosts=[*{str(record.host) for record in records if record.host}, *(holder.host for holder in holders)],
        variables={name for step in experiment.steps for name in step.variables},
    )


def _render(experiment: PageSteps, scrub: Scrubber) -> str:
    from markupsafe import Markup  # late, for its weight

    steps, prices = experiment.steps, price_list()
    detailed = steps_in_detail(steps)
    readings = read_steps(detailed, scrub)
    attention, more_attention = attention_of(steps, scrub)
    names = {step.name for step in detailed}
    origins = together(step.origins for step in steps)
    return template(TEMPLATE, Path(__file__).parent).render(
        title=experiment.title,
        summary=_summary(experiment, prices),
        attention=attention,
        more_attention=more_attention,
        states=NAMES,
        picture=Markup(picture_of(steps)),
        changes=changes_of(steps, scrub),
        rows=[row_of(step, readings.records.get(step.name), prices) for step in steps[:MOST_ROWS]],
        more_rows=max(0, len(steps) - MOST_ROWS),
        origins=origins,
        size_of=lambda size: "not known" if size is None else readable_bytes(size),
        origins_total=total_of_origins(origins).describe(),
        detailed=[detail_of(step, readings.records.get(step.name), scrub) for step in detailed],
        in_detail=names,
        more_detailed=len(steps) - len(detailed),
        provenance=provenance_of(steps, scrub),
        **_learnt(readings, Markup),
    )


def _summary(experiment: PageSteps, prices: Any) -> str:
    """One line: counts by state, time, cost, size, commit."""
    records = [record for step in experiment.steps for record in step.records]
    sums = sums_of(records, prices)
    amounts = (describe_amount(name, sums[name]) for name in ("wall_s", "device_s", "dollars", "bytes"))
    return " · ".join(filter(None, (counts_of(experiment.steps), *amounts, commits_of(records, experiment.commit))))


def _learnt(readings: Readings, markup: Any) -> dict[str, Any]:
    """The values of the report's parts of the template."""
    records = readings.records
    details = {label: details_of(step) for label, step in records.items()}
    return {
        "records": records,
        "outcomes": outcomes_of(records),
        "best": {label: best for label, step in records.items() if isinstance(best := step.result.get("best"), str)},
        "number": lambda *place: markup(tagged(records, *place)),
        "losses": {label: markup(chart) for label, chart in readings.losses.items()},
        "scores": {
            label: [(task, markup(chart)) for task, chart in charts] for label, charts in readings.scores.items()
        },
        "generated": readings.generated,
        "plots": readings.plots,
        "waterfalls": [(labels, markup(chart)) for labels, chart in readings.waterfalls],
        "timelines": {label: markup(chart) for label, chart in readings.timelines.items()},
        "details": details,
        "configs": readings.configs,
        "problems": readings.problems,
        "links": {label: links_of(step.result) for label, step in records.items()},
    }
