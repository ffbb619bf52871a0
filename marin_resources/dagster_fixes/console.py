"""A run's console log: short lines on stderr, with the time and the message. A failed step prints its sentence.

With MARIN_LOG_FORMAT=json each is an object, for a service whose log a machine reads: the keys of Dagster's own
`--log-format json` (timestamp, level, logger, event), and run_id, job, step.

Seen with Dagster 1.13.27: dagster-io/dagster#23984 and dagster-io/dagster#20084. Without this, the terminal shows a
line for each event of a run.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import sys
from typing import Any

import dagster as dg

from marin_resources.configuration.settings import SettingError

FORMAT_VARIABLE = "MARIN_LOG_FORMAT"
FORMATS = ("text", "json")


@dg.logger(config_schema={}, description="Short lines on stderr: the time and the message, nothing below INFO.")
def short_console(init_context: dg.InitLoggerContext) -> logging.Logger:
    """Dagster's console logger with short lines. The event log has everything."""
    return _short_logger()


def shorten_console(log: dg.DagsterLogManager, run: dg.DagsterRun) -> None:
    """Give a run without loggers in its config the short console too.

    Dagster (1.13.27) has its own one for such a run, whatever the definitions contain: a line for each event, and a
    traceback for each step that was stopped.
    """
    if not run.run_config.get("loggers"):
        log._dagster_handler._loggers = [_short_logger()]


def _short_logger() -> logging.Logger:
    logger = logging.Logger("marin", logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter())
    logger.addHandler(handler)
    return logger


def _formatter() -> logging.Formatter:
    chosen = os.environ.get(FORMAT_VARIABLE) or "text"
    if chosen not in FORMATS:
        raise SettingError(f"{FORMAT_VARIABLE} is {chosen!r}, expected one of {', '.join(map(repr, FORMATS))}.")
    return _JsonFormatter() if chosen == "json" else _ShortFormatter("%(asctime)s %(message)s", "%H:%M:%S")


def failure_sentence(event: dg.DagsterEvent) -> str:
    """The error of a failed step: its sentence, or the message of the first cause."""
    data = event.step_failure_data
    if data.user_failure_data is not None and "error" in data.user_failure_data.metadata:
        return str(data.user_failure_data.metadata["error"].value)
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description.strip()
    error = first_cause(data.error)
    return (error.message if error is not None else event.message or "").strip()


def first_cause(error: Any) -> Any:
    """The cause of Dagster's own errors, of which the one of an op has the op's name alone."""
    while error is not None and error.cause is not None and str(error.cls_name).startswith("Dagster"):
        error = error.cause
    return error


def run_failure(event: dg.DagsterEvent) -> str:
    """The error of a run that failed outside of its steps: the message of the first cause."""
    error = first_cause(event.job_failure_data.error)
    message = error.message if error is not None else event.message or ""
    name = f"{error.cls_name}: " if error is not None else ""  # "package.module.SomeError: the message"
    return (message.partition(name)[2] if name and name in message else message).strip()


class _ShortFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        meta: dict[str, Any] = getattr(record, "dagster_meta", {})
        event = meta.get("dagster_event")
        message = meta.get("orig_message", record.msg)
        record.msg = failure_sentence(event) if event is not None and event.is_step_failure else message
        record.args, record.exc_info, record.exc_text = None, None, None
        return super().format(record)


class _JsonFormatter(_ShortFormatter):
    def format(self, record: logging.LogRecord) -> str:
        meta: dict[str, Any] = getattr(record, "dagster_meta", {})
        fields = {
            "timestamp": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": super().format(record),
            "run_id": meta.get("run_id"),
            "job": meta.get("job_name"),
            "step": meta.get("step_key"),
        }
        return json.dumps({key: value for key, value in fields.items() if value is not None})
