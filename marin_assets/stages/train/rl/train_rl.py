"""Train a model by reinforcement learning: on answers that it gives itself, by rewards that environments compute.

In:  the model to begin with, a Hugging Face folder with its tokenizer; environments (`environments/environment.py`).
Out, below the output path, as in `train_lm`: hf/, checkpoints/, exports/, metrics.jsonl, plots/loss.png; and
     rollouts/          every answer that was drawn, with its reward, and why it was not used if it was not
     plots/             rewards.png (with pass@1 and pass@k), policy.png, waits.png
     ledger.jsonl       in the free order, the groups of each batch (`orders/ledger.py`)
     curriculum.json    with a curriculum: the lessons of each step
     weights/, units/, plans/ and ledger/ exist while it runs.
     metrics.jsonl has rl/reward, rl/pass_at_1 and rl/pass_at_k (`measures/`), each also by /<lesson>; rl/staleness,
     rl/staleness_max, rl/rollouts_unused, rl/groups_without_variance, rl/batch_share (groups of which something is
     used, of those that a batch has room for), rl/answer_tokens, rl/truncated_share, rl/wait_share,
     rl/samplers_wait_share, rl/drawn_tokens_per_second, rl/sync_share and rl/sync_bytes; and of the loss
     train/ratio_mean, train/ratio_max, train/mismatch_max, train/bound_share, train/k3_of_sampler, train/kl and
     train/entropy.

In the scheduled order the weights are a function of the config alone: any number of samplers, and any kills, give the
same bytes on the same hardware, as long as no method of an environment comes near its time limit. In any order they are
a function of the config and of the rollouts, which `replay_of` trains on again.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import hf_shape
from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.resumable import EXPORT, FinishedRun, curve_of, result_of, run_resumably
from marin_assets.stages.train.rl.config import FREE, TrainRlConfig, as_training
from marin_assets.stages.train.rl.measures.health import health_of
from marin_assets.stages.train.rl.measures.plot import plot_policy, plot_rewards, plot_waits
from marin_assets.stages.train.rl.measures.tables import tables_of
from marin_assets.stages.train.rl.orders.ledger import combine_entries
from marin_assets.stages.train.rl.rollout import combine_steps, count_rollouts, read_rollouts
from marin_assets.stages.train.rl.sampling.sampler import UNITS
from marin_assets.stages.train.rl.sampling.samplers import opened_samplers
from marin_assets.stages.train.train_lm import check_shape
from marin_assets.stages.train.vocabulary import require_rows
from marin_resources.step_api.hosts import host_count
from marin_resources.storage.files import names_in, open_to_read, remove_folder
from marin_resources.storage.paths import join

KINDS = ("levanter", "jax")
PLOTS = {"plots/rewards.png": plot_rewards, "plots/policy.png": plot_policy, "plots/waits.png": plot_waits}
FOLDERS_OF_A_RUN = ("weights", "plans", UNITS)
PART = 0.1
"""Share of the steps, whose mean reward is that at the start, and that at the end."""


def train_rl(config: TrainRlConfig) -> dict[str, Any]:
    """Train, or resume training from the last checkpoint, and export.

    Returns steps, parameters, reward_start and reward_end (means over the first and the last tenth of the steps),
    rewards_end by lesson, reward_curve, rollouts, rollouts_used, rollouts_unused (by reason), mismatch_max (the largest
    difference of a log-probability between sampling and loss, in nats, where both had the same weights), staleness,
    wait_share (of the training, for rollouts), samplers_wait_share, sync_share (of a step, for weights on their way),
    with `replay_of` same_as_replayed (whether the model is that of the other training, to the same bytes), the numbers
    of `health_of`, the tables by_lesson, by_reason and samples (`measures/`), and what `train_lm` returns of a run.
    Raises TrainError for an invalid config, an environment that cannot be opened, and a sampler that differs from the
    loss.
    """
    config.check_fields()
    if host_count() > 1:
        raise TrainError("This trains on one host, and the step has several. Request a slice of one host.")
    training = as_training(config)
    assert training.start is not None
    shape = hf_shape(training.model)  # type: ignore[arg-type]
    check_shape(training, shape)
    if config.max_length is not None and config.max_length > shape.max_seq_len:
        raise TrainError(
            f"max_length is {config.max_length}, and the model takes at most {shape.max_seq_len} tokens. Lower it."
        )
    require_rows(None, training.start, config.tokenizer_path)
    with nullcontext() if config.replay_of is not None else opened_samplers(config) as samplers:
        from marin_assets.stages.train.rl.orders.free import keep_left  # jax and Levanter take 3 s to import
        from marin_assets.stages.train.rl.trainer.run import run_levanter_rl

        run = run_resumably(
            training,
            partial(run_levanter_rl, config=config, samplers=samplers),
            family=shape.family,
            validation_loss="eval/loss",
        )
    assert run is not None
    if config.order == FREE:
        keep_left(config)
    combine_entries(config.output_path)
    combine_steps(config.output_path, config.num_train_steps)
    for folder in FOLDERS_OF_A_RUN:
        with suppress(FileNotFoundError):  # a bucket has no empty folders, and an earlier attempt may have removed it
            remove_folder(join(config.output_path, folder))
    for name, plot in PLOTS.items():
        plot(run.rows, join(config.output_path, name))
    return _result(config, run)


def _result(config: TrainRlConfig, run: FinishedRun) -> dict[str, Any]:
    rewards = _values(run.rows, "rl/reward")
    part = max(round(len(rewards) * PART), 1)
    last = run.rows[-part:]
    same_weights = [row for row in run.rows if row.get("rl/staleness") == 0]
    common = result_of(run)
    return {
        "steps": config.num_train_steps,
        "parameters": run.parameters.total,
        "reward_start": _mean(rewards[:part]),
        "reward_end": _mean(rewards[-part:]),
        "rewards_end": {name: _mean(_values(last, f"rl/reward/{name}")) for name in sorted(config.lessons)},
        "reward_curve": curve_of(rewards),
        **count_rollouts(read_rollouts(config.output_path)),
        "mismatch_max": max(_values(same_weights, "train/mismatch_max"), default=None),
        "staleness": _mean(_values(run.rows, "rl/staleness")),
        "wait_share": _mean(_values(run.rows, "rl/wait_share")),
        "samplers_wait_share": _mean(_values(run.rows, "rl/samplers_wait_share")),
        "sync_share": _mean(_values(run.rows, "rl/sync_share")),
        **common,
        "steps_without_loss": _values(run.rows, "rl/answer_tokens").count(0.0),
        **health_of(run.rows),
        **tables_of(config.output_path, last),
        "plots": [*PLOTS, *common["plots"]],
        **({} if config.replay_of is None else {"same_as_replayed": _has_weights_of(config, config.replay_of)}),
    }


def _has_weights_of(config: TrainRlConfig, source: str) -> bool:
    """Whether the trained model is that of another training, to the same bytes."""
    digests = []
    for folder in (join(path, EXPORT) for path in (config.output_path, source)):
        names = sorted(name for name in names_in(folder) if name.endswith(".safetensors"))
        digests.append([(name, _digest(join(folder, name))) for name in names])
    return digests[0] == digests[1]


def _digest(path: str) -> str:
    with open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _values(rows: Sequence[Row], metric: str) -> list[float]:
    return [row[metric] for row in rows if metric in row]


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 6) if values else None


__all__ = ["TrainRlConfig", "train_rl"]
