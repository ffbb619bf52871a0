"""The process that draws the sequences of a step: `python -m marin_assets.browse.batches.draw` (see `question.py`).

It is no part of the server, as importing jax and Levanter takes seconds and 500 MB, and a damaged cache may end it.
It reads a line with a question, then writes a line with the answer, until its standard input ends or no question came
for IDLE_S. All files that it reads are below the prefixes that are shown: every cache is checked, as those of the page
of tokens are, before tensorstore opens it.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import resource
import select
import tempfile
from collections.abc import Iterator
from dataclasses import replace

from marin_assets.browse.batches.question import Answer, Drawn, Question
from marin_assets.browse.errors import BrowseError, NotShownError
from marin_assets.browse.places import Places
from marin_assets.browse.stored.token_rows import check_cache
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.mixture_inputs import caches_in, checked_mixture
from marin_assets.stages.train.inputs.recorded_config import restore_config
from marin_assets.stages.train.inputs.token_inputs import check_inputs, expand_snapshots
from marin_assets.stages.train.specs.model import sequence_length
from marin_assets.stages.train.train_lm import shape_in
from marin_resources.storage.watched_reads import watching
from marin_resources.types.errors import MarinError

MOST_MEMORY_BYTES = 8 * 1024**3
IDLE_S = 600
READY = "ready"


class Confined:
    """A watch that lets the process read below the prefixes alone. The limits of the request are the server's."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def opened(self, place: str) -> None:
        self._places.require_shown(place)

    def read(self, count: int) -> None:
        """Without a limit of its own."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    out = os.dup(1)
    os.dup2(2, 1)  # libraries print; the answers are alone on the standard output
    logging.disable(logging.WARNING)
    from marin_assets.stages.train.levanter_run import batch  # noqa: F401  jax and Levanter take 3 s to import

    with os.fdopen(out, "w", buffering=1) as file, os.fdopen(os.dup(0), buffering=1) as asked:
        file.write(f"{READY}\n")
        while select.select([asked], [], [], IDLE_S)[0]:
            line = asked.readline()
            if not line:
                break
            file.write(f"{answer_to(Question.from_json(line)).to_json()}\n")


def answer_to(question: Question) -> Answer:
    try:
        return _draw(question)
    except BrowseError as error:
        return Answer(error=str(error), status=error.status)
    except (MarinError, OSError, MemoryError) as error:
        return Answer(error=str(error) or type(error).__name__)
    except Exception as error:  # errors of tensorstore, Levanter and jax for caches that are damaged
        text = " ".join(str(error).split())[:400]
        return Answer(error=f"The batch cannot be drawn ({type(error).__name__}: {text}). Compute the caches again.")


def _draw(question: Question) -> Answer:
    places = Places(question.prefixes)
    config = restore_config(TrainLmConfig, question.config)
    if question.step >= config.num_train_steps and config.start is None:
        raise TrainError(
            f"The training has {config.num_train_steps:,} steps, counted from 0, and no {question.step:,}."
        )
    with watching(Confined(places)), tempfile.TemporaryDirectory(prefix="marin-batch-") as folder:
        for path in _folders(config):
            _require_shown(places, path)
        shape = shape_in(config)
        length = sequence_length(config, shape)
        if config.mixture is not None:
            config = replace(config, mixture=checked_mixture(config, config.mixture, length))
        else:
            config = replace(config, components=expand_snapshots(config.components))
        for path in caches_in(config).values():
            _require_shown(places, path)
            check_cache(places, f"{path}/train")
        if config.mixture is None:
            check_inputs(config.components, config.train_weights, config.tokenizer_path, length)
        from marin_assets.stages.train.levanter_run.batch import draw_batch  # as above

        batch = draw_batch(
            config,
            family=shape.family,
            step=question.step,
            first=question.first,
            count=question.count,
            folder=folder,
        )
    return Answer(size=batch.size, sequences=tuple(Drawn(**dataclasses.asdict(drawn)) for drawn in batch.sequences))


def _folders(config: TrainLmConfig) -> Iterator[str]:
    """The folders that the config names, and snapshots among them."""
    yield config.tokenizer_path
    yield from config.components.values()
    for member in (config.mixture.components if config.mixture is not None else {}).values():
        yield from [member] if isinstance(member, str) else member.values()


def _require_shown(places: Places, path: str) -> None:
    if places.text_of(path) is None:
        raise NotShownError(
            f"{path!r:.300}, which the training reads, is outside of what is shown: {', '.join(places.prefixes)}. "
            "Start the browser with --also and its prefix."
        )


if __name__ == "__main__":
    main()
