"""Continue a text with a trained model, on this machine: the newest complete checkpoint, or that of --model.

The model's own text goes to stdout, after the prompt, as it is made.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence

from marin_assets.catalog.code_location import select_nodes
from marin_assets.run.options import OptionError, add_prefix, add_script, prefix_of
from marin_assets.run.output import print_line, print_raw, print_stderr
from marin_resources.configuration.command import make_or
from marin_resources.ray_tpu.environment.extras import missing_in_environment
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.ray_tpu.requirements import Requirements
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.files import exists
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join

EXPORT = "hf"
"""The folder of a training step's output with the Hugging Face export."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", help="the text to continue; - reads it from stdin")
    parser.add_argument("--model", metavar="M", help="a step that trains, or the folder of a Hugging Face export")
    parser.add_argument("--max-tokens", type=int, default=100, metavar="N", help="at most so many (default: 100)")
    parser.add_argument("--temperature", type=float, default=0.8, metavar="T", help="0: the likeliest (default: 0.8)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sampling (default: 0)")
    add_prefix(parser)
    add_script(parser)


def run(options: argparse.Namespace) -> int:
    for missing in missing_in_environment([Requirements(step="", extras=("train",))]).values():
        raise OptionError(f"marin generate {missing[0].phrase}")
    folder = _find_model(options)
    print_stderr(f"model: {folder}")
    # late, for their weight: what is missing is reported before they are loaded
    from marin_assets.documents.caches.tokens import TokenizerFileError
    from marin_assets.inference.jax_model import ModelError, load_model
    from marin_assets.inference.local_copy import copy_to_local
    from marin_assets.stages.evaluate.sample_text import sample_text

    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    try:
        with tempfile.TemporaryDirectory(prefix="model-") as local:
            model, tokenizer = load_model(copy_to_local(folder, local))
            pieces = sample_text(
                model,
                tokenizer,
                prompt,
                max_tokens=options.max_tokens,
                temperature=options.temperature,
                seed=options.seed,
            )
            print_raw(prompt)
            for piece in pieces:
                print_raw(piece)
            print_line("")
    except (ModelError, TokenizerFileError) as error:
        raise OptionError(f"marin generate: {error}") from None
    return 0


def _find_model(options: argparse.Namespace) -> str:
    """The folder of the export. Raises OptionError if none exists."""
    if options.model and exists(join(options.model, "config.json")):
        return str(options.model)
    if options.model and (os.path.isabs(options.model) or "://" in options.model):
        raise OptionError(
            f"marin generate: --model is {options.model!r}, where no config.json is, expected a step that trains, or "
            "the folder of a Hugging Face export."
        )
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    exports = _exports(store, [options.model] if options.model else [], options.script)
    if not exports:
        which = f"selected by {options.model!r}" if options.model else "of the experiments"
        raise OptionError(
            f"marin generate: none of the steps {which} has a complete model at {store.prefix!r}. Give --model or "
            f"--prefix, or train one first: {make_or('quickstart', 'python -m marin_assets.experiments.quickstart')}"
        )
    return exports[-1]


def _exports(store: Store, selections: Sequence[str], script: str | None) -> list[str]:
    """The exports of the selected steps' complete outputs, the oldest first."""
    _, nodes = select_nodes(selections, None, script)
    looked = store.look(node.output for node in nodes)
    done = [observed for observed in looked.values() if observed.done]
    done.sort(key=lambda observed: str(observed.record.finished_at))
    folders = [join(observed.path, EXPORT) for observed in done]
    return [folder for folder in folders if exists(join(folder, "config.json"))]
