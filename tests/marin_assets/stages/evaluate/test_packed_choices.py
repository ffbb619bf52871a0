"""The choices of a question are scored behind one context, and have the likelihoods of texts of their own."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hugging_face_logits import read_logits
from hugging_face_models import FAMILIES, write_folder

from marin_assets.inference.jax_model import longest_packed
from marin_assets.stages.evaluate.models import jax_lm
from marin_assets.stages.evaluate.models.jax_lm import JaxLM
from marin_assets.stages.evaluate.models.kept_answers import KeptAnswers

APART = 1e-6
NOT_PACKED = ("mixtral", "olmo3")
pytestmark = [
    pytest.mark.long,  # imports and compiling
    pytest.mark.filterwarnings("default"),  # warnings of Levanter and its dependencies
]


def questions(window: int) -> list[tuple[None, list[int], list[int]]]:
    """Contexts from none to longer than the window, 2 to 20 choices of 1 to 12 tokens, two of them equal."""
    drawn = random.Random(0)

    def ids(count: int) -> list[int]:
        return [drawn.randrange(3, 64) for _ in range(count)]

    requests: list[tuple[None, list[int], list[int]]] = []
    for context, choices in ((0, 2), (3, 4), (14, 2), (14, 4), (15, 20), (window - 2, 4), (2 * window, 5)):
        before = [0, *ids(context)]
        after = [ids(drawn.randint(1, 12)) for _ in range(choices)]
        after[-1] = after[0]
        requests += [(None, before, choice) for choice in after]
        requests += [(None, before, ids(5)) for _ in range(3)]  # of one length, which cut a context at one place
    requests.append((None, [0, *ids(14)], []))  # an empty choice
    return requests


def together_and_alone(lm: JaxLM, monkeypatch: pytest.MonkeyPatch, requests: list[Any]) -> tuple[int, list[Any], Any]:
    """The number of trees of several branches, the scores with them in filled rows, and the scores without."""
    counted = []
    grow = jax_lm.grow_trees

    def count(runs: Any, longest: int) -> Any:
        trees = grow(runs, longest)
        counted.append(sum(len(tree.branches) > 1 for tree in trees))
        return trees

    with monkeypatch.context() as changed:
        changed.setattr(jax_lm, "grow_trees", count)
        together = lm._loglikelihood_tokens(requests)
        changed.setattr(jax_lm, "longest_packed", lambda model: 0)
        lm.kept_answers = KeptAnswers()
        alone = lm._loglikelihood_tokens(requests)
    assert counted[1] == 0
    return counted[0], together, alone


def assert_equal(together: list[Any], alone: list[Any]) -> None:
    assert [total for total, _ in together] == pytest.approx([total for total, _ in alone], rel=APART)
    assert [greedy for _, greedy in together] == [greedy for _, greedy in alone]


def test_packed_choices_have_the_likelihoods_of_rows_of_their_own(
    model_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from marin_assets.inference.jax_model import load_model

    lm = JaxLM(*load_model(model_path), batch_size=8)
    trees, together, alone = together_and_alone(lm, monkeypatch, questions(lm.max_length))
    assert trees >= 6
    assert_equal(together, alone)


def test_logits_are_computed_in_parts_where_all_are_too_many(model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from marin_assets.inference.jax_model import load_model

    lm = JaxLM(*load_model(model_path), batch_size=8)
    requests = questions(lm.max_length)
    whole = lm._loglikelihood_tokens(requests)
    monkeypatch.setattr(jax_lm, "LOGITS_BYTES", 4 * lm._model.Vocab.size * 40)
    lm.kept_answers = KeptAnswers()
    assert_equal(lm._loglikelihood_tokens(requests), whole)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_packs_or_takes_a_row_for_each_text(
    name: str, model_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from marin_assets.inference.jax_model import load_model

    folder = write_folder(tmp_path / name, name, read_logits()[name]["shapes"])
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{model_path}/{file}", folder)
    lm = JaxLM(*load_model(str(folder)), batch_size=8)
    trees, together, alone = together_and_alone(lm, monkeypatch, questions(lm.max_length))
    assert (trees > 0) == (name not in NOT_PACKED)
    assert_equal(together, alone)


def test_learned_positions_begin_again_for_each_choice(model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import haliax as hax
    import jax
    from levanter.models.gpt2 import Gpt2Config

    from marin_assets.inference.tokenizer import ModelTokenizer

    config = Gpt2Config(max_seq_len=32, hidden_dim=32, num_layers=2, num_heads=2)
    model = config.build(hax.Axis("vocab", 64), key=jax.random.PRNGKey(0))
    lm = JaxLM(model, ModelTokenizer(model_path), batch_size=8)
    trees, together, alone = together_and_alone(lm, monkeypatch, questions(32))
    assert trees >= 6
    assert_equal(together, alone)


def test_a_window_that_slides_is_not_packed(model_path: str, tmp_path: Path) -> None:
    from marin_assets.inference.jax_model import load_model

    folder = write_folder(tmp_path / "qwen2", "qwen2", read_logits()["qwen2"]["shapes"])
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{model_path}/{file}", folder)
    assert longest_packed(load_model(str(folder))[0]) > 0
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "use_sliding_window": True, "sliding_window": 8}))
    assert longest_packed(load_model(str(folder))[0]) == 0
