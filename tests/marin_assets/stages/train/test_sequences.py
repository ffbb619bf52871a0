"""The sequences that we make in numpy are Levanter's, array by array."""

from __future__ import annotations

from typing import Any

import pytest

DRAWN = 500


@pytest.mark.long  # it imports Levanter, and compiles
@pytest.mark.parametrize("apart", [True, False], ids=["documents apart", "documents see each other"])
@pytest.mark.parametrize("joined", [True, False], ids=["two caches of one member", "two members"])
def test_a_batch_is_equal_to_that_of_levanter(inputs: Any, apart: bool, joined: bool) -> None:
    import jax
    import numpy as np
    from haliax import Axis
    from levanter.data.text import ConcatDatasetComponent, DatasetComponent, LmDataConfig
    from levanter.schedule import BatchSchedule

    from marin_assets.stages.train.levanter_run.sequences import SequenceData

    caches = {name: DatasetComponent(cache_dir=path) for name, path in inputs.components.items()}
    settings = {
        "tokenizer": inputs.tokenizer_path,
        "auto_build_caches": False,
        "block_cross_document_attention": apart,
        "components": {"both": ConcatDatasetComponent(children=caches)} if joined else caches,
        "mixture_block_size": 16,
    }
    ours, levanters = (
        made(**settings)
        .train_set(Axis("position", 64), BatchSchedule(8), key=jax.random.PRNGKey(1))
        .as_sync_dataset()
        .get_batch(list(range(DRAWN)))
        for made in (SequenceData, LmDataConfig)
    )
    assert jax.tree.structure(ours) == jax.tree.structure(levanters)
    pairs = list(zip(jax.tree.leaves(ours), jax.tree.leaves(levanters), strict=True))
    assert len(pairs) == DRAWN * (4 if apart else 2)
    assert all(one.dtype == other.dtype and np.array_equal(one, other) for one, other in pairs)
    if apart:
        assert max(int(one.max()) for one, _ in pairs[2::4]) > 0, "no sequence has the border of two documents"
