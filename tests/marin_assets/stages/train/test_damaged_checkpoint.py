"""A checkpoint with whole metadata and damaged data: it is named, and the one before is taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.checkpoints import DAMAGED, last_checkpoint_step, permanent_steps, remove_unfinished
from marin_assets.stages.train.errors import DamagedCheckpointError
from marin_assets.stages.train.specs.start import FromCheckpoint
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json, write_json
from marin_resources.wire.config_json import encode

pytestmark = [
    pytest.mark.filterwarnings("default"),  # warnings of Levanter and its dependencies
    pytest.mark.timeout(1200),
]

RUN = """
import json, logging, sys
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

logging.basicConfig(level=logging.WARNING)
for config in sys.argv[1:]:
    try:
        result = train_lm(decode(json.loads(config)))
    except TrainError as error:
        result = {"error": str(error)}
    print(json.dumps(result), flush=True)
"""
Damage = Callable[[Path], None]


def biggest(folder: Path) -> Path:
    return max((file for file in (folder / "d").iterdir()), key=lambda file: file.stat().st_size)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


DAMAGES: dict[str, Damage] = {
    "a data file is missing": lambda folder: biggest(folder).unlink(),
    "a data file is cut": lambda folder: cut(biggest(folder)),
    "a data file is empty": lambda folder: biggest(folder).write_bytes(b""),
    "all data files are missing": lambda folder: shutil.rmtree(folder / "d"),
    "the manifest is missing": lambda folder: (folder / "manifest.ocdbt").unlink(),
    "the manifest is cut": lambda folder: cut(folder / "manifest.ocdbt"),
    "the manifest is zeros": lambda folder: (folder / "manifest.ocdbt").write_bytes(bytes(200)),
}


def config_of(inputs: Any, output: Path, **changes: Any) -> TrainLmConfig:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1),
        "num_train_steps": 10,
        "train_batch_size": 4,
        "steps_per_eval": 5,
        "max_eval_batches": 1,
        "steps_per_checkpoint": 4,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
    }
    return unwrap_versioned_value(TrainLmConfig(**{**settings, **changes}))


def test_a_checkpoint_that_is_marked_is_none(tmp_path: Path) -> None:
    for step in (4, 8):
        write_json(f"{tmp_path}/step-{step}/metadata.json", {"step": step, "is_temporary": False})
    write_json(f"{tmp_path}/step-8/{DAMAGED}", {"reason": "DATA_LOSS"})
    assert (last_checkpoint_step(str(tmp_path)), permanent_steps(str(tmp_path))) == (4, [4])
    assert remove_unfinished(str(tmp_path)) == ["step-8"]


@pytest.mark.long
def test_damage_is_told_from_a_store_that_fails_and_from_a_sound_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax
    import levanter.checkpoint

    from marin_assets.stages.train.levanter_run.damage import damage_in, damage_named

    tree = {"model": {"a": jax.numpy.ones((300, 200)), "b": jax.numpy.arange(7.0)}}
    levanter.checkpoint.save_checkpoint(tree, 4, f"{tmp_path}/sound/step-4")
    assert damage_in(f"{tmp_path}/sound/step-4") is None
    for name, damage in DAMAGES.items():
        folder = tmp_path / name / "step-4"
        shutil.copytree(tmp_path / "sound/step-4", folder)
        damage(folder)
        with damage_named(f"{tmp_path}/{name}"), pytest.raises(DamagedCheckpointError) as raised:
            levanter.checkpoint.load_checkpoint(tree, folder)
        assert str(raised.value).startswith(f"The checkpoint at '{folder}' is damaged: "), name
        assert "\n" not in str(raised.value), name
        assert read_json(f"{folder}/{DAMAGED}") == {"reason": raised.value.reason}

    other = {"model": {"a": tree["model"]["a"], "c": tree["model"]["b"]}}
    with damage_named(f"{tmp_path}/sound"), pytest.raises(FileNotFoundError, match="model/c"):
        levanter.checkpoint.load_checkpoint(other, f"{tmp_path}/sound/step-4")

    def unavailable(*_: Any, **__: Any) -> None:
        raise ValueError("UNAVAILABLE: the store does not answer")

    monkeypatch.setattr("levanter.checkpoint.tree_deserialize_leaves_tensorstore", unavailable)
    with damage_named(f"{tmp_path}/sound"), pytest.raises(ValueError, match="UNAVAILABLE"):
        levanter.checkpoint.load_checkpoint(tree, f"{tmp_path}/sound/step-4")
    assert not (tmp_path / f"sound/step-4/{DAMAGED}").exists()


@pytest.mark.long
def test_a_training_takes_the_checkpoint_before_a_damaged_one_and_no_other_training_begins_with_it(
    inputs: Any, tmp_path: Path
) -> None:
    config = config_of(inputs, tmp_path / "a")
    undisturbed = train_lm(config)
    weights = (tmp_path / "a/hf/model.safetensors").read_bytes()
    cut(biggest(tmp_path / "a/checkpoints/step-9"))
    starts = [
        FromCheckpoint(checkpoints_path=f"{tmp_path}/a/checkpoints", optimizer_state=one) for one in (False, True)
    ]
    others = [config_of(inputs, tmp_path / f"b{number}", start=start) for number, start in enumerate(starts)]
    # in a process of its own: TensorStore keeps in memory what this one has written
    arguments = [sys.executable, "-c", RUN, *(json.dumps(encode(one)) for one in (*others, config))]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=1100, check=False, env=os.environ)
    assert ran.returncode == 0, ran.stderr[-3000:]
    *refused, result = (json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{"))
    assert len(refused) == 2
    for one in refused:  # of somebody else: named, and left as it is
        assert one["error"].startswith(
            f"The checkpoint at '{tmp_path}/a/checkpoints/step-9' is damaged: OUT_OF_RANGE: "
        )
        assert one["error"].endswith("Restore its files, or begin with another one: pass its number as step.")
    assert f"the checkpoint {tmp_path}/a/checkpoints/step-9 is damaged (OUT_OF_RANGE: " in ran.stderr
    assert (result["resumed_from_step"], result["loss_end"]) == (8, undisturbed["loss_end"])
    assert (tmp_path / "a/hf/model.safetensors").read_bytes() == weights
    assert permanent_steps(f"{tmp_path}/a/checkpoints") == [4, 8, 9]

    from marin_assets.stages.train.levanter_run.damage import damage_in

    assert damage_in(f"{tmp_path}/a/checkpoints/step-9") is None, "written again"
