"""Write an experiment as one HTML page: no script, no network, no other file, and nothing private.

In:  the steps, with the states of their outputs, and the store, of which records, logs and plots are read.
Out: the page. Its sections are: sums; what failed or runs; whether it learnt; the DAG; expectations; partitions; what
     changed; drift; the steps; sources and licences; details of steps; provenance.

Style, curves, scores and tables are those of the report of a finished experiment: `marin_assets/stages/report`. A
server that shows the page beside the data passes its addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from marin_assets.experiment_page.addresses import Addresses
from marin_assets.experiment_page.page_steps import PageStep, PageSteps
from marin_assets.experiment_page.readings import Readings, read_steps, steps_in_detail
from marin_assets.experiment_page.sections.attention import attention_of
from marin_assets.experiment_page.sections.changes import changes_of
from marin_assets.experiment_page.sections.drift import drift_of
from marin_assets.experiment_page.sections.expectations import expectations_of
from marin_assets.experiment_page.sections.links import links_of
from marin_assets.experiment_page.sections.partitions import partitions_of
from marin_assets.experiment_page.sections.picture import picture_of
from marin_assets.experiment_page.sections.rows import detail_of, row_of
from marin_assets.experiment_page.sums import NAMES, counts_of, describe_amount, sums_of
from marin_assets.plan.record_facts.origins import total_of_origins
from marin_assets.stages.report.numbers import tagged
from marin_assets.stages.report.page_rows import details_of
from marin_assets.stages.report.provenance import commits_of, provenance_of
from marin_assets.stages.report.report import outcomes_of, template
from marin_assets.step.origin import together
from marin_resources.drift.web_address import web_page_of_commit
from marin_resources.scrub.private_values import hosts_of, places_of, private_values, users_of
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.usage.cost_estimate import price_list
from marin_resources.types.record import Record

MOST_ROWS = 3_000
"""Steps in the table."""
TEMPLATE = "page.html.j2"


def page_of(experiment: PageSteps, addresses: Addresses | None = None) -> str:
    """The page. Raises SettingError for invalid prices, UnavailableError."""
    links = addresses or Addresses()
    scrub = Scrubber(_private(experiment))
    return scrub.page(_render(experiment, scrub, links), links.given)


def _private(experiment: PageSteps) -> Any:
    records = [record for step in experiment.steps for record in step.records]
    holders = [seen.holder for step in experiment.steps for seen in step.outputs.values() if seen.holder is not None]
    return private_values(
        [experiment.prefix, *places_of(records)],
        users=[*experiment.users, *users_of(records)],
        hosts=[*hosts_of(records), *(holder.host for holder in holders)],
        variables={name for step in experiment.steps for name in step.variables},
    )


def _render(experiment: PageSteps, scrub: Scrubber, addresses: Addresses) -> str:
    from markupsafe import Markup  # late, for its weight

    steps, prices = experiment.steps, price_list()
    detailed = steps_in_detail(steps)
    readings = read_steps(detailed, scrub, experiment.shows)
    attention, more_attention = attention_of(steps, scrub, addresses)
    drifting, more_drifting = drift_of(steps, scrub)
    names = {step.name for step in steps}
    origins = together(step.origins for step in steps)
    partitions = partitions_of(steps, scrub, addresses, lambda sentence: readings.problems.append(scrub.text(sentence)))
    return template(TEMPLATE, Path(__file__).parent).render(
        title=experiment.title,
        trail=addresses.trail,
        summary=_summary(experiment, prices),
        attention=attention,
        more_attention=more_attention,
        states=NAMES,
        picture=Markup(picture_of(steps)),
        expectations=expectations_of(readings.records, scrub),
        partitions=partitions,
        changes=changes_of(steps, scrub),
        drifting=drifting,
        more_drifting=more_drifting,
        is_report=False,
        rows=[row_of(step, readings.records.get(step.name), prices, addresses) for step in steps[:MOST_ROWS]],
        more_rows=max(0, len(steps) - MOST_ROWS),
        origins=origins,
        size_of=lambda size: "not known" if size is None else readable_bytes(size),
        origins_total=total_of_origins(origins).describe(),
        detailed=[detail_of(step, readings.records.get(step.name), scrub, addresses, names) for step in detailed],
        in_detail={step.name for step in detailed},
        more_detailed=len(steps) - len(detailed),
        provenance=provenance_of(_records(steps), lambda function, commit: _commit_page(function, commit, scrub)),
        **_learnt(readings, Markup),
    )


def _records(steps: Sequence[PageStep]) -> Iterator[tuple[str, Record]]:
    return ((step.name, record) for step in steps for record in step.records)


def _commit_page(function: str, commit: str, scrub: Scrubber) -> str:
    """The commit's page on the web; "" without one, and for one that has the name of a person."""
    link = web_page_of_commit(function, commit) or ""
    return link if scrub.text(link) == link else ""


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
