"""A sampler: a model that samples units of a training, with the weights that the training has published.

It samples in the process of the training, or in one of its own (`samplers.py`), to the same digit.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import read_hf_config
from marin_assets.stages.train.inputs.inherited_files import chat_template_of_start, generation_config
from marin_assets.stages.train.inputs.token_inputs import set_chat_template, stage_tokenizer
from marin_assets.stages.train.rl.config import TrainRlConfig, as_training
from marin_assets.stages.train.rl.plan import Unit, UnitKey
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.environment_process import EnvironmentProcess
from marin_assets.stages.train.rl.weights.fetch import Fetcher, Source
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_resources.ray_tpu.job.accelerator import accelerator_variables
from marin_resources.step_api.hosts import missing_accelerator
from marin_resources.storage.files import exists, names_below, read_json, remove, remove_folder, write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import decode

UNITS = "units"
"""Below the output, while it runs: the rollouts of units whose step is not whole yet."""

REMEDY = "Compute the step again, and it is sampled again."

log = logging.getLogger(__name__)


class DamagedUnitError(TrainError):
    """The file of a unit does not have its rollouts."""


class Sampler:
    """Has a decoder, whose weights are replaced as the training continues."""

    def __init__(self, config: TrainRlConfig, folder: str, environments: EnvironmentProcess) -> None:
        """`folder` is on this machine, and has the tokenizer."""
        from marin_assets.inference.tokenizer import ModelTokenizer  # jax and Levanter take 3 s to import
        from marin_assets.stages.train.rl.weights.packing import WeightsReader

        self._config, self._environments, self._folder = config, environments, folder
        tokenizer_folder = stage_model_tokenizer(config, os.path.join(folder, "tokenizer"))
        self._tokenizer = ModelTokenizer(tokenizer_folder)
        self._reader, self._fetcher = WeightsReader(config, tokenizer_folder), Fetcher()
        self._decoder: Any = None
        self._digest = ""
        self._opened = ExitStack()

    def close(self) -> None:
        self._opened.close()

    def sample(self, unit: str, source: str) -> dict[str, float]:
        """Sample a unit with the weights of a source, both JSON, and write its rollouts. Returns what that took: all 0
        of a unit that another process has sampled already."""
        from marin_assets.stages.train.rl.sampling.unit import UnitSampler

        planned: Unit = decode(json.loads(unit))
        path = unit_path(self._config.output_path, planned)
        if exists(path):
            try:
                read_unit(self._config.output_path, planned)
                return {"seconds": 0.0, "tokens": 0, "fetch_s": 0.0, "fetched_bytes": 0}
            except DamagedUnitError as error:
                log.warning("It is sampled again: %s", error)
        began = time.monotonic()
        fetched_bytes = self._take_weights(decode(json.loads(source)))
        fetched = time.monotonic()
        rollouts = UnitSampler(self._config, self._decoder, self._environments).sample(planned, self._digest)
        write_unit(self._config.output_path, planned, rollouts)
        return {
            "seconds": time.monotonic() - began,
            "tokens": sum(sum(rollout.mask) for rollout in rollouts),
            "fetch_s": fetched - began,
            "fetched_bytes": fetched_bytes,
        }

    def _take_weights(self, source: Source) -> int:
        """Have the decoder compute with these weights. Returns the bytes that were fetched: 0 if it has them."""
        if self._digest == source.digest:
            return 0
        content = self._fetcher.fetch(source)
        model = self._reader.model_of(content)
        if self._decoder is None:
            self._decoder = self._decoder_of(model)
        else:
            self._decoder.replace_weights(model)
        self._digest = source.digest
        return len(content)

    def _decoder_of(self, model: Any) -> Any:
        """A decoder with the weights of this model, in this process or of a server beside it."""
        if self._config.engine is not None:
            from marin_assets.stages.train.rl.sampling.served_decoder import ServedDecoder

            decoder = ServedDecoder(self._config, model, self._tokenizer, self._folder)
            return self._opened.enter_context(decoder)
        from marin_assets.inference.decoder import Decoder

        rows = self._config.groups_per_unit * self._config.group_size
        return Decoder(model, self._tokenizer, rows=rows, max_length=self._config.max_length)


@contextmanager
def open_sampler(config: str) -> Iterator[Sampler]:
    """A sampler for the block, in a process of its own. `config` is JSON."""
    own: TrainRlConfig = decode(json.loads(config))
    if own.engine is not None:
        os.environ["JAX_PLATFORMS"] = "cpu"  # its server has the devices
    from marin_assets.stages.train.rl.sampling.numbers import use_numbers_of_training

    use_numbers_of_training(own)
    with open_sampler_here(own) as sampler:
        yield sampler


@contextmanager
def open_sampler_on_host(config: str) -> Iterator[Sampler]:
    """As `open_sampler`, in a process that Ray has given the config's `sampler_resources`. Raises TrainError if jax
    does not find the devices."""
    own: TrainRlConfig = decode(json.loads(config))
    if own.engine is not None:
        with open_sampler(config) as sampler:
            yield sampler
        return
    os.environ.update(accelerator_variables(own.sampler_resources))
    with open_sampler(config) as sampler:
        import jax

        if (missing := missing_accelerator(jax.default_backend(), jax.devices()[0].device_kind)) is not None:
            raise TrainError(missing)
        yield sampler


@contextmanager
def open_sampler_here(config: TrainRlConfig) -> Iterator[Sampler]:
    """A sampler for the block, in a process whose jax is set as in a training. Raises TrainError."""
    with (
        tempfile.TemporaryDirectory(prefix="marin-sampler-") as folder,
        EnvironmentProcess(config.lessons, timeout_s=config.method_timeout_s) as environments,
    ):
        sampler = Sampler(config, folder, environments)
        try:
            yield sampler
        finally:
            sampler.close()


def stage_model_tokenizer(config: TrainRlConfig, folder: str) -> str:
    """Copy the tokenizer to a local folder, with the template and the stop tokens that the export will have."""
    training = as_training(config)
    assert isinstance(training.start, FromHuggingFace)
    hf_path = training.start.path
    stage_tokenizer(config.tokenizer_path, folder, read_hf_config(hf_path)["model_type"])
    if (template := chat_template_of_start(training.start, config.tokenizer_path)) is not None:
        set_chat_template(folder, template)
    from marin_assets.inference.tokenizer import ModelTokenizer

    own = ModelTokenizer(folder)
    generation = generation_config(training, bos=own.bos_token_id, eos=own.eos_token_id)
    write_json(join(folder, "generation_config.json"), generation)
    return folder


def unit_path(output_path: str, unit: UnitKey) -> str:
    return join(output_path, UNITS, f"{unit.step:07}", f"{unit.number:04}-{unit.weights_step:07}.json")


def write_unit(output_path: str, unit: UnitKey, rollouts: Sequence[Rollout]) -> None:
    write_bytes(unit_path(output_path, unit), json.dumps([vars(rollout) for rollout in rollouts]).encode())


def stored_units(output_path: str) -> list[UnitKey]:
    """The units whose rollouts are stored; of those of a step and a number, that of the newest weights."""
    matches = (re.fullmatch(r"(\d+)/(\d+)-(\d+)\.json", name) for name in names_below(join(output_path, UNITS)))
    numbers = sorted(tuple(map(int, match.groups())) for match in matches if match)
    newest = {(step, number): weights_step for step, number, weights_step in numbers}
    return [UnitKey(step=step, number=number, weights_step=weights) for (step, number), weights in newest.items()]


def read_unit(output_path: str, unit: UnitKey) -> list[Rollout]:
    """The rollouts of a unit. Raises DamagedUnitError for a file that does not have them."""
    path = unit_path(output_path, unit)
    try:
        rollouts = [Rollout(**rollout) for rollout in read_json(path)]
        keys = {(of.step, of.weights_step) for of in rollouts}
        present = [(of.group, of.lesson, of.member) for of in rollouts]
    except (ValueError, TypeError) as error:
        raise DamagedUnitError(f"The unit at {path!r} cannot be read ({error}). {REMEDY}") from error
    if keys != {(unit.step, unit.weights_step)} or (isinstance(unit, Unit) and present != _answers_of(unit)):
        raise DamagedUnitError(f"The unit at {path!r} has other rollouts than those of its step. {REMEDY}")
    return rollouts


def _answers_of(unit: Unit) -> list[tuple[int, str, int]]:
    return [(group.number, group.lesson, member) for group in unit.groups for member in range(len(group.seeds))]


def remove_unit(output_path: str, unit: UnitKey) -> None:
    """Remove a unit, whose rollouts are in tables."""
    remove(unit_path(output_path, unit))


def remove_units(output_path: str, step: int) -> None:
    """Remove the units of a step, whose table is written."""
    remove_folder(join(output_path, UNITS, f"{step:07}"))
