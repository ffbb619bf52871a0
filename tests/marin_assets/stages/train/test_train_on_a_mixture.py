"""What a training on a mixture draws: recorded tokens of caches in which every sequence says which it is."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from numbered_caches import SEQUENCE, write_numbered
from recorded_training import results, sequences_by_step, start_recorded, start_two_hosts

from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.inputs.mixture_inputs import checked_mixture
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.specs.mixture import BlockShuffle, Mixture, Subset
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

STEPS, BATCH = 24, 4
TINY = LlamaSpec(max_seq_len=SEQUENCE, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)
WEB, CODE, BOOKS, HELD_OUT = range(10, 110), range(150, 210), range(250, 290), range(400, 407)
"""The tokens of the sequences of each member."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def caches(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two that are only trained on, one with both sides, one that is only validated on."""
    folder = tmp_path_factory.mktemp("numbered")

    def write(name: str, tokens: range, **sides: int) -> str:
        return write_numbered(folder / name, inputs.tokenizer_path, tokens.start, len(tokens), **sides)

    return {
        "web": write("web", WEB, validation=5),
        "code": write("code", CODE, shards=3),
        "books": write("books", BOOKS),
        "held_out": write_numbered(folder / "held_out", inputs.tokenizer_path, HELD_OUT.start, 0, validation=7),
    }


def config_of(inputs: Any, output: Path, mixture: Mixture, **changes: Any) -> TrainLmConfig:
    settings = {
        "components": {},
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": TINY,
        "mixture": mixture,
        "num_train_steps": STEPS,
        "train_batch_size": BATCH,
        "steps_per_eval": 50,
        "max_eval_batches": 1,
        "steps_per_checkpoint": 5,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


def encoded(config: TrainLmConfig) -> str:
    return json.dumps(encode(config))


def varying(caches: dict[str, str], **changes: Any) -> Mixture:
    phases = [(0, {"web": 0.75, "code": 0.25}), (12, {"web": 0.25, "code": 0.5, "books": 0.25})]
    return Mixture(**{"components": caches, "weights": phases, "block_size": 16, **changes})


def halves(caches: dict[str, str], *names: str, **changes: Any) -> Mixture:
    components = {name: caches[name] for name in names}
    return Mixture(components=components, weights=dict.fromkeys(names, 1.0), block_size=16, **changes)


def losses(output: Path) -> dict[int, float]:
    return {row["step"]: row["train/loss"] for row in read_metrics(f"{output}/metrics.jsonl") if "train/loss" in row}


@pytest.fixture(scope="module")
def whole(inputs: Any, caches: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A training that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    (result,) = results([start_recorded(encoded(config_of(inputs, folder / "out", varying(caches))), folder / "drawn")])
    return folder, result


def test_each_block_has_the_shares_of_its_phase_and_a_member_goes_on_where_it_stood(whole: tuple[Path, Any]) -> None:
    drawn = sequences_by_step(whole[0] / "drawn")
    assert list(drawn) == list(range(STEPS))
    for block in range(STEPS * BATCH // 16):
        tokens = [token for step in range(4 * block, 4 * block + 4) for token in drawn[step]]
        counts = {"web": 12, "code": 4, "books": 0} if block < 3 else {"web": 4, "code": 8, "books": 4}
        assert {
            "web": sum(token in WEB for token in tokens),
            "code": sum(token in CODE for token in tokens),
            "books": sum(token in BOOKS for token in tokens),
        } == counts
    assert max(Counter(token for tokens in drawn.values() for token in tokens).values()) == 1, "drawn twice"


def test_members_are_evaluated_that_have_a_validation_side(whole: tuple[Path, Any]) -> None:
    first, *_ = read_metrics(str(whole[0] / "out/metrics.jsonl"))
    found = {name.split("/")[1] for name in first if name.startswith("eval/") and name.count("/") == 2}
    assert found == {"web", "held_out"}


def test_the_result_and_the_metrics_have_the_weights_in_force(whole: tuple[Path, Any]) -> None:
    folder, result = whole
    assert result["mixture"] == {
        "web": {"share": 0.5, "sequences": 100, "epochs": 0.48},
        "code": {"share": 0.375, "sequences": 60, "epochs": 0.6},
        "books": {"share": 0.125, "sequences": 40, "epochs": 0.3},
    }
    rows = {row["step"]: row for row in read_metrics(str(folder / "out/metrics.jsonl"))}
    names = [f"mixture/weight/{name}" for name in ("web", "code", "books")]
    assert [rows[11][name] for name in names] == [0.75, 0.25, 0.0]
    assert [rows[12][name] for name in names] == [0.25, 0.5, 0.25]
    assert all("mixture/phase" in row for step, row in rows.items() if step >= 2)


def test_a_training_takes_what_its_data_have_in_their_order(
    inputs: Any, caches: dict[str, str], whole: tuple[Path, Any]
) -> None:
    drawn = [token for tokens in sequences_by_step(whole[0] / "drawn").values() for token in tokens]
    assert drawn == draw(config_of(inputs, whole[0] / "out", varying(caches)))


@pytest.mark.parametrize("killed_at", [7, 14])  # before and after the border of the phases
def test_a_killed_training_draws_the_same_sequences(
    inputs: Any, caches: dict[str, str], whole: tuple[Path, Any], tmp_path: Path, killed_at: int
) -> None:
    config = encoded(config_of(inputs, tmp_path / "out", varying(caches)))
    killed = start_recorded(config, tmp_path / "drawn", KILL_AT_STEP=str(killed_at))
    output, _ = killed.communicate(timeout=1200)
    assert killed.returncode == -9, output
    (result,) = results([start_recorded(config, tmp_path / "drawn")])
    assert 0 < result["resumed_from_step"] < killed_at
    assert sequences_by_step(tmp_path / "drawn") == sequences_by_step(whole[0] / "drawn")
    assert losses(tmp_path / "out") == losses(whole[0] / "out")


def test_two_hosts_draw_the_same_sequences_also_after_a_kill(
    inputs: Any, caches: dict[str, str], whole: tuple[Path, Any], tmp_path: Path
) -> None:
    config = encoded(config_of(inputs, tmp_path / "out", varying(caches)))
    for host in start_two_hosts(config, tmp_path / "drawn", KILL_AT_STEP="13"):
        host.communicate(timeout=1200)
        assert host.returncode != 0
    first, _ = results(start_two_hosts(config, tmp_path / "drawn"))
    assert 0 < first["resumed_from_step"] < 13
    assert sequences_by_step(tmp_path / "drawn") == sequences_by_step(whole[0] / "drawn")
    assert losses(tmp_path / "out") == pytest.approx(losses(whole[0] / "out"), abs=1e-5)


def draw(config: TrainLmConfig) -> list[int]:
    """The tokens of the sequences of a training, from its data alone."""
    import jax
    from haliax import Axis
    from levanter.schedule import BatchSchedule

    from marin_assets.stages.train.levanter_run.data import build_data

    assert config.mixture is not None
    config = replace(config, mixture=checked_mixture(config, config.mixture, config.model.max_seq_len))
    key = jax.random.split(jax.random.PRNGKey(config.seed), 4)[0]  # as Levanter's train_lm splits it
    schedule = BatchSchedule(config.train_batch_size)
    data = build_data(config, tokenizer=config.tokenizer_path).train_set(Axis("position", SEQUENCE), schedule, key=key)
    examples = data.as_sync_dataset().get_batch(range(config.num_train_steps * config.train_batch_size))
    return [int(example.tokens.array[0]) for example in examples]


def test_the_order_in_which_members_are_written_does_not_matter(inputs: Any, caches: dict[str, str]) -> None:
    phases = [(0, {"code": 0.25, "web": 0.75}), (12, {"books": 0.25, "code": 0.5, "web": 0.25})]
    backwards = Mixture(components=dict(reversed(caches.items())), weights=phases, block_size=16)
    one, other = (draw(config_of(inputs, Path("x"), mixture)) for mixture in (varying(caches), backwards))
    assert one == other


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [(0, {"web": 0.75, "code": 0.25}), (16, {"web": 0.5, "books": 0.5})]},
        {"block_size": 48},
        {"shuffle": False},
        {"shuffle": BlockShuffle(io_block_size=4, window_blocks=2)},
        {"permutation_type": "linear"},
        {"subsets": {"web": Subset(sequences=90)}},
        {"experiment_budget_tokens": 10, "target_budget_tokens": 60},
    ],
    ids=str,
)
def test_what_is_in_the_version_decides_the_data(inputs: Any, caches: dict[str, str], change: dict[str, Any]) -> None:
    one, other = (
        draw(config_of(inputs, Path("x"), mixture)) for mixture in (varying(caches), varying(caches, **change))
    )
    assert one != other


def test_a_slice_is_the_first_tokens_or_a_drawn_part_that_no_seed_of_a_training_changes(
    inputs: Any, caches: dict[str, str]
) -> None:
    def drawn(sequences: int, **changes: Any) -> list[int]:
        subsets = {"web": Subset(tokens=20 * SEQUENCE + 31), "code": Subset(sequences=sequences, seed=7)}
        mixture = halves(caches, "web", "code", subsets=subsets)
        return draw(config_of(inputs, Path("x"), mixture, **changes))

    one, other = drawn(10), drawn(10, seed=1)
    assert sorted({token for token in one if token in WEB}) == list(WEB[:20])
    part = {token for token in one if token in CODE}
    assert len(part) == 10
    assert part != set(CODE[:10])
    assert {token for token in other if token in CODE} == part
    assert other != one
    assert part < {token for token in drawn(15) if token in CODE}


def test_simulated_epochs_repeat_each_member_as_the_longer_training_would(inputs: Any, caches: dict[str, str]) -> None:
    mixture = halves(caches, "web", "code", experiment_budget_tokens=1000, target_budget_tokens=10_000)
    drawn = Counter(draw(config_of(inputs, Path("x"), mixture)))
    assert len([token for token in drawn if token in WEB]) == 10
    assert {drawn[token] for token in drawn if token in CODE} == {STEPS * BATCH // 2 // 6}


def test_outputs_that_are_one_member_are_drawn_by_their_sizes(inputs: Any, caches: dict[str, str]) -> None:
    components = {"text": {"web": caches["web"], "books": caches["books"]}, "held_out": caches["held_out"]}
    mixture = Mixture(components=components, weights={"text": 1.0}, block_size=len(WEB) + len(BOOKS))
    drawn = draw(config_of(inputs, Path("x"), mixture, num_train_steps=35))
    assert sorted(drawn) == [*WEB, *BOOKS], "an epoch is exact at the end of a block"


def test_a_mixture_that_ends_before_the_training_is_refused(inputs: Any, caches: dict[str, str]) -> None:
    ending = halves(caches, "web", "books", stop_strategy="first_exhausted")
    assert len(draw(config_of(inputs, Path("x"), ending, num_train_steps=18))) == 72
    with pytest.raises(InputError, match=r"ends after [78][0-9] sequences by stop_strategy='first_exhausted', and the"):
        draw(config_of(inputs, Path("x"), ending))
    assert len(draw(config_of(inputs, Path("x"), replace(ending, stop_strategy="all_exhausted")))) == STEPS * BATCH
