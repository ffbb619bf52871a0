"""A schedule that computes a whole experiment again, at a tiny scale, to check that it still can be computed.

    from marin_sensors.canary import canary

    every_morning = canary(cron="0 5 * * *", start=True)

Each run computes the experiment below a prefix of its own, `<MARIN_PREFIX>/canary/<time>-<run>`, on the cluster of the
deployment, with a Dagster home of its own: no asset's page shows its outputs. Then it runs the experiment a second
time, which must compute nothing. If both hold, the folder is removed. If not, the run fails, the folder is kept, and
the sensor `failures` reports it to the webhook. While the last canary is in progress, none is started.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from marin_resources.configuration.settings import SettingError, default_prefix
from marin_resources.dagster_fixes.run_launcher import process_tag
from marin_resources.storage.files import remove_folder
from marin_resources.storage.paths import join
from marin_sensors.experiment_process.process import Ended, find_module, run_experiment
from marin_sensors.runs.cron import require_cron
from marin_sensors.runs.in_progress import SCHEDULE, in_progress

QUICKSTART = "marin_assets.experiments.quickstart"
TINY = ("--scale", "tiny")
FOLDER = "canary"
"""Below the prefix."""
NAME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[0-9a-f]{8}")
"""The folder name of one canary: its time, UTC, and its run."""
NO_RETRY = {"dagster/retry_on_asset_or_op_failure": "false"}
"""A canary that failed is not tried again: the first failure is the news."""
SHOWN_LINES = 20


def canary(
    name: str = "canary",
    *,
    cron: str = "0 5 * * *",
    module: str = QUICKSTART,
    arguments: Sequence[str] | None = None,
    timezone: str = "UTC",
    timeout_s: float = 3600,
    start: bool = False,
) -> dg.ScheduleDefinition:
    """A schedule named `name` whose job computes an experiment twice, from nothing.

    cron         when: "0 5 * * *" is every morning at five, in the time zone
    module       of the experiment: a module that ends in executor_main(…)
    arguments    of its command line, beside --prefix. Default: "--scale", "tiny" for the quickstart, none for another
    timeout_s    seconds that each of its two runs may take
    start        whether it runs without being switched on. Its runs cost what the experiment costs
    """
    require_cron(name, cron, timezone)
    if not timeout_s > 0:
        raise ValueError(f"The schedule {name!r} has timeout_s={timeout_s!r}, expected seconds above 0.")
    experiment = find_module(module)
    if isinstance(arguments, str):
        raise ValueError(f"The schedule {name!r} has arguments={arguments!r}, expected a list: {arguments.split()!r}.")
    given = TINY if arguments is None and module == QUICKSTART else tuple(arguments or ())

    @dg.op(name=name, description=f"Runs {module} twice, below a prefix of its own.")
    def make_twice(context: dg.OpExecutionContext) -> None:
        context.instance.add_run_tags(context.run_id, process_tag(context.run_id))  # as the executor of steps does
        try:
            prefix = default_prefix()
        except SettingError as error:
            raise _failure(str(error), ()) from None
        folder = join(prefix, FOLDER, f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-{context.run_id[:8]}")
        context.log.info(f"The canary makes {module} at {folder}.")
        for turn, what_is_wrong in (("first", _wrong_at_first), ("second", _wrong_again)):
            ended = run_experiment(experiment, [*given, "--prefix", folder], timeout_s)
            if problem := _wrong(ended, timeout_s) or what_is_wrong(ended):
                raise _failure(
                    f"The {turn} run of {module!r} {problem} Its outputs are kept at {folder!r}: look at them, then "
                    "remove the folder.",
                    ended.last_lines,
                )
            context.log.info(f"The {turn} run: {ended.computed} computed, {ended.reused} reused, {ended.took_s:.0f} s.")
        remove_canary(prefix, folder)

    @dg.job(
        name=f"{name}_job",
        description=f"Computes {module}, at a prefix of its own, and then again, which must compute nothing.",
        executor_def=dg.in_process_executor,
        tags={SCHEDULE: name, **NO_RETRY},
    )
    def job() -> None:
        make_twice()

    @dg.schedule(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING if start else dg.DefaultScheduleStatus.STOPPED,
        description=f"Computes {module} to see that it still can be computed. Nothing while its last run continues.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if in_progress(context.instance, SCHEDULE, name):
            return dg.SkipReason("The last canary is in progress, so none is started.")
        return dg.RunRequest()

    return schedule


def remove_canary(prefix: str, folder: str) -> None:
    """Remove the folder of one canary, and nothing else. Raises ValueError for another folder."""
    above, _, name = folder.rpartition("/")
    if above != join(prefix, FOLDER) or not NAME.fullmatch(name):
        raise ValueError(
            f"{folder!r} is not the folder of a canary, expected {join(prefix, FOLDER)}/<time>-<run>. It stays."
        )
    remove_folder(folder)


def _wrong(ended: Ended, timeout_s: float) -> str:
    """The problem of either run, as the rest of a sentence; empty if it has none."""
    last = next((line for line in reversed(ended.last_lines) if line), "")
    last_line = f" Its last line: {last}" if last else ""
    if ended.code is None:
        return f"had not ended after {timeout_s:g} s, and was stopped.{last_line}"
    if ended.code:
        return f"ended with exit code {ended.code} after {ended.took_s:.0f} s.{last_line}"
    if ended.computed is None:
        return f"printed no counts, expected a module that ends in executor_main(…).{last_line}"
    return ""


def _wrong_at_first(ended: Ended) -> str:
    return "" if ended.computed else f"computed nothing at an empty prefix, and reused {ended.reused} outputs."


def _wrong_again(ended: Ended) -> str:
    if not ended.computed:
        return ""
    outputs = "an output" if ended.computed == 1 else f"{ended.computed} outputs"
    return f"computed {outputs} that the first had completed, expected none: complete outputs are not reused."


def _failure(sentence: str, lines: Sequence[str]) -> dg.Failure:
    """A failure as the sensor `failures` reads it: its sentence, and the last lines."""
    metadata: dict[str, dg.MetadataValue | str] = {"error": sentence}
    if lines:
        shown = "\n".join(lines[-SHOWN_LINES:])
        metadata["traceback"] = dg.MetadataValue.md(f"```\n{shown}\n```")
    return dg.Failure(sentence, metadata=metadata, allow_retries=False)
