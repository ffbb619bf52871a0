"""The record of an output, `.executor_info`: the fields that this software reads, in Marin's names and ours. Pure.

The fields are declared here alone. A field with a shape is checked when the file is read; one that is `unchecked` is
shown to people or compared as it is. A config has the shape that its step gave it. Marin's own records lack fields, or
have others; a record keeps those.
"""

from __future__ import annotations

from marin_resources.types.json_fields import (
    JsonObject,
    integer,
    mapping,
    number,
    numbers_by_name,
    objects,
    optional_part,
    part,
    parts_by_name,
    required_text,
    required_texts,
    text,
    texts,
    texts_by_name,
    unchecked,
)


class AdoptedInput(JsonObject):
    """The source of adopted data that an output was made from, and the reason."""

    path = required_text("from")
    why = required_text()


class Adoption(AdoptedInput):
    """The source of an adopted output's data, and the reason."""

    by = text()
    at = text()
    of = mapping()
    """The output that the data were made as."""


class RecordedOrigin(JsonObject):
    """A data set that an output was computed from, as it was described then."""

    name = required_text()
    licence = text()
    bytes = integer()
    homepage = text()


class Size(JsonObject):
    """The manifest of an output in short."""

    digest = text()
    files = integer()
    bytes = integer()


class SourceDigest(JsonObject):
    """The code of the step's function, and of its imports (see `marin_resources/drift/source_digest.py`)."""

    function = required_text()
    digest = required_text()
    files_digest = required_text()
    modules = required_texts()


class Environment(JsonObject):
    lock_digest = text()
    python = text()


class Spent(JsonObject):
    """Sums over the attempts that led to the output (see `marin_resources/storage/output/notes/cost.py`)."""

    wall_s = number()
    cpu_s = number()
    reserved_cpu_s = number()
    device_s = number()
    pool = text()
    attempts = integer()
    unknown_attempts = integer()


class RecordedJob(JsonObject):
    """The job of a Ray cluster that computed the output."""

    id = required_text()
    dashboard = required_text()
    code = unchecked()


class Record(JsonObject):
    """The facts of an output: its config, inputs, code, process and result. One without a field is empty."""

    name = text()
    identity = text()
    version = mapping()
    prefix = text()
    data_path = text()
    data_prefix = text()
    cluster = text()
    adopted = optional_part(Adoption)
    adopted_inputs = parts_by_name(AdoptedInput)
    origins = parts_by_name(RecordedOrigin)
    """By the name of the step that downloaded it."""
    dependencies = texts()
    asset_key = texts()
    """The asset's key in Dagster, if the step has one of its own; else the name gives it."""
    attempt = integer()
    duration_s = number()
    result = mapping()
    manifest = part(Size)
    inputs = texts_by_name()
    source_digest = optional_part(SourceDigest)
    environment = part(Environment)
    timing = numbers_by_name()
    tries = objects()
    ledger = numbers_by_name()
    bytes_in = integer()
    spent = part(Spent)
    job = optional_part(RecordedJob)
    format_version = unchecked()
    config = unchecked()
    error = unchecked()
    finished_at = unchecked()
    started_at = unchecked()
    output_path = unchecked()
    override_output_path = unchecked()
    partition = unchecked()
    fn_name = unchecked()
    description = unchecked()
    dagster_run_id = unchecked()
    user = unchecked()
    host = unchecked()
    site = unchecked()
    git = unchecked()
    project = unchecked()

    @property
    def has_result(self) -> bool:
        """Whether a result is recorded, if only an empty one. Marin records none."""
        return "result" in self.to_dict()
