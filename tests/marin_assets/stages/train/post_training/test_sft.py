"""A model is trained on chats: on the answers alone, and it chats when it is exported."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from nano_training import answers_of, kill_at, losses_of, nano_config, weights_of

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.train_lm import ChatSpec, FromHuggingFace, TrainLmConfig, train_lm

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # warnings of Levanter and its dependencies


def test_the_loss_on_held_out_chats_falls_and_the_answers_are_right(
    tuned: tuple[Path, dict[str, Any]], base_path: str
) -> None:
    output, result = tuned
    assert result["loss_end"] < 0.2 * result["loss_start"]
    questions, right = [f"{d} + {d}" for d in range(10)], [str(2 * d) for d in range(10)]
    found = answers_of(output / "hf", questions)
    assert sum(a == b for a, b in zip(found, right, strict=True)) >= 8, found


def test_it_begins_with_the_model_of_the_earlier_step(
    tuned: tuple[Path, dict[str, Any]], inputs: Any, caches: Any, base_path: str, tmp_path: Path
) -> None:
    """Without a step of training of note the exported model is that one."""
    config = nano_config(
        TrainLmConfig,
        inputs,
        tmp_path,
        1e-30,  # of no effect on a float32
        components={"chats": caches.chats_path},
        start=FromHuggingFace(path=base_path),
        chat=ChatSpec(chats_per_sequence=1),
        num_train_steps=2,
    )
    result = train_lm(config)
    assert weights_of(tmp_path) == weights_of(base_path, "model.safetensors")
    assert result["loss_start"] == pytest.approx(result["loss_end"])


def test_the_loss_is_on_the_answers_alone(inputs: Any, caches: Any, tmp_path: Path) -> None:
    import haliax as hax
    import jax
    from levanter.schedule import BatchSchedule
    from levanter.tokenizers import load_tokenizer

    from marin_assets.stages.train.formats import chat_format
    from marin_assets.stages.train.inputs.token_inputs import set_chat_template, stage_tokenizer
    from marin_assets.stages.train.levanter_run.config import build_config

    config = nano_config(
        TrainLmConfig, inputs, tmp_path, 1e-3, components={"chats": caches.chats_path}, chat=ChatSpec()
    )
    tokenizer = stage_tokenizer(inputs.tokenizer_path, str(tmp_path / "tokenizer"))
    chats = chat_format(config.components)
    assert chats is not None
    set_chat_template(tokenizer, chats.template)
    data = build_config(config, tokenizer=tokenizer, log_dir=str(tmp_path)).data
    dataset = data.train_set(hax.Axis("position", 64), BatchSchedule(4), key=jax.random.PRNGKey(0)).as_sync_dataset()
    decode, counts = load_tokenizer(tokenizer).decode, []
    for example in dataset.get_batch(range(32)):
        tokens, weights = example.tokens.array.tolist(), example.loss_weight.array.tolist()
        learnt = decode([token for token, weight in zip(tokens[1:], weights, strict=False) if weight])
        assert re.fullmatch(r"( \d+<\|eos\|>)+", learnt)
        counts.append((decode(tokens).count("<|bos|>User"), learnt.count("<|eos|>")))
    assert {chats for chats, _ in counts} >= {1, 2}, "chats are packed"
    assert any(answers > chats for chats, answers in counts), "a chat may have several answers"


def test_the_exported_tokenizer_has_the_template_and_the_model_stops_at_its_end(
    tuned: tuple[Path, dict[str, Any]],
) -> None:
    from transformers import AutoTokenizer

    folder = tuned[0] / "hf"
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    chat = [{"role": "user", "content": "7 + 7"}, {"role": "assistant", "content": "14"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False) == "<|bos|>User: 7 + 7\nAssistant: 14<|eos|>\n"
    masked = tokenizer.apply_chat_template(chat, return_assistant_tokens_mask=True, return_dict=True)
    learnt = [t for t, m in zip(masked["input_ids"], masked["assistant_masks"], strict=True) if m]
    assert tokenizer.decode(learnt) == " 14<|eos|>"
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [1]


def test_a_chat_model_that_is_trained_on_documents_stops_and_chats_as_before(
    inputs: Any, tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    shutil.copytree(tuned[0] / "hf", tmp_path / "chat")
    said = {"eos_token_id": [1, 7], "temperature": 0.6, "bos_token_id": 0}
    (tmp_path / "chat/generation_config.json").write_text(json.dumps(said))
    for name, lora in (("all", None), ("lora", LoraSpec(rank=2))):
        start = FromHuggingFace(path=f"{tmp_path}/chat")
        changes: dict[str, Any] = {"components": inputs.components, "start": start, "num_train_steps": 2, "lora": lora}
        train_lm(nano_config(TrainLmConfig, inputs, tmp_path / name, 1e-3, **changes))
        exported = tmp_path / name / "hf"
        assert json.loads((exported / "generation_config.json").read_text()) == said
        assert "begin_suppress_tokens" not in json.loads((exported / "config.json").read_text())
        template = json.loads((exported / "tokenizer_config.json").read_text())["chat_template"]
        assert template == json.loads((tuned[0] / "hf/tokenizer_config.json").read_text())["chat_template"]


def test_a_killed_run_gives_the_same_weights(
    tuned: tuple[Path, dict[str, Any]], inputs: Any, caches: Any, base_path: str, tmp_path: Path
) -> None:
    config = nano_config(
        TrainLmConfig,
        inputs,
        tmp_path,
        5e-3,
        components={"chats": caches.chats_path},
        start=FromHuggingFace(path=base_path),
        chat=ChatSpec(),
        num_train_steps=150,
        steps_per_checkpoint=40,
    )
    kill_at("marin_assets.stages.train.train_lm:train_lm", config, 100)
    assert len(read_metrics(f"{tmp_path}/metrics.jsonl")) < 101
    assert train_lm(config)["resumed_from_step"] == 80
    assert weights_of(tmp_path) == weights_of(tuned[0])
    assert losses_of(tmp_path) == losses_of(tuned[0])
