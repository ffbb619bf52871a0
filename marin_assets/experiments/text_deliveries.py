"""Text that arrives in deliveries: each becomes documents and tokens of its own; a nano Llama on a snapshot of them.

python -m marin_assets.experiments.text_deliveries --example    three deliveries of Python's help; two to a model
python -m marin_assets.experiments.text_deliveries --partition 2026-03
python -m marin_assets.experiments.text_deliveries --dry-run

A delivery is a folder `<prefix>/inbox/help/<name>/` of `*.jsonl.gz`, with a file `_SUCCESS` that is written last. The
sensor `new_deliveries` finds it, and the schedule `nightly_backfill` computes what is missing: both are in
marin_sensors/deployed/, and are switched on in Dagster's UI.
"""

from __future__ import annotations

import gzip
import json
import sys
from pydoc_data.topics import topics

from marin_assets import Step, dynamic, executor_main, expect, output_path_of, this_partition, versioned
from marin_assets.defaults import default_download, default_snapshot, default_tokenize, default_tokenizer, default_train
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_resources.configuration.settings import default_prefix
from marin_resources.storage.files import exists, write_bytes
from marin_resources.storage.paths import join

DELIVERIES = dynamic("deliveries")
SNAPSHOTS = dynamic("delivery_snapshots")
INBOX = "inbox/help"
"""Under the prefix."""
EXAMPLES = ("2026-01", "2026-02", "2026-03")
"""The deliveries of `--example`. The last one is delivered and left to be computed."""
VALIDATION = 0.1


def steps() -> list[Step]:
    """Return the steps of each delivery, and those of each snapshot."""
    raw = default_download(
        "text_deliveries", this_partition(form=f"{{prefix}}/{INBOX}/{{partition}}/*.jsonl.gz"), partitions=DELIVERIES
    )
    documents = Step(
        name="documents/text_deliveries",
        fn=ingest,
        config=IngestConfig(
            input_path=output_path_of(raw),
            text_column=versioned("body"),
            id_column=versioned("title"),
            source=versioned("help"),
        ),
        extras=("curate",),
        resumable=True,
        partitions=DELIVERIES,
        expectations=[expect("kept", at_least=1)],
    )
    # one for all: that of a named delivery, so that the next one changes no version
    tokenizer = default_tokenizer(
        "text_deliveries",
        output_path_of(documents, partition=EXAMPLES[0]),
        vocab_size=1024,
        validation_fraction=VALIDATION,
    )
    tokens = default_tokenize("text_deliveries", documents, tokenizer, validation_fraction=VALIDATION)
    snapshot = default_snapshot("text_deliveries", of=tokens, partitions=SNAPSHOTS)
    model = default_train(
        "text_deliveries",
        snapshot,
        LlamaSpec(),
        TrainLmConfig(components={}, tokenizer_path=output_path_of(tokenizer), num_train_steps=versioned(60)),
        partitions=SNAPSHOTS,
    )
    return [tokens, model]


def deliver(prefix: str, number: int) -> None:
    """Write one of the examples into the inbox: a part of the articles of Python's help. An existing delivery stays."""
    folder = join(prefix, INBOX, EXAMPLES[number])
    if exists(join(folder, "_SUCCESS")):
        return
    articles = sorted(topics.items())[number :: len(EXAMPLES)]
    lines = "".join(json.dumps({"title": title, "body": body}) + "\n" for title, body in articles)
    write_bytes(join(folder, "articles.jsonl.gz"), gzip.compress(lines.encode(), mtime=0))
    write_bytes(join(folder, "_SUCCESS"), b"")


def make_example() -> None:
    """Deliver the examples, compute all but the last of them, and train a model on a snapshot of these."""
    for number in range(len(EXAMPLES)):
        deliver(default_prefix(), number)
    *computed, last = EXAMPLES
    program = sys.argv[0]
    sys.argv = [program, "--select", "+tokenized", *(f"--partition={name}" for name in computed)]
    executor_main(steps())
    sys.argv = [program, "--select", "checkpoints", "--select", "snapshots", f"--partition=until-{computed[-1]}"]
    executor_main(steps())
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.dynamic_keys import add_keys

    add_keys({DELIVERIES.name: [last]})
    print(f"{last} is delivered to {join(default_prefix(), INBOX, last)}, and not computed yet: see docs/tutorial.md")


if __name__ == "__main__":
    if sys.argv[1:] == ["--example"]:
        make_example()
    else:
        executor_main(steps())
