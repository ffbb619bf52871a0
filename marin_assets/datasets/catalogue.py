"""All known data sets, by family and by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from marin_assets.datasets import code, encyclopedia, evaluation, math, web
from marin_assets.datasets.dataset import Dataset, Family
from marin_assets.datasets.instructions import chats
from marin_assets.datasets.pairs import preferences


def _by_name(datasets: Iterable[Dataset]) -> Family[Dataset]:
    return Family({dataset.name: dataset for dataset in datasets})


FAMILIES: Mapping[str, Mapping[str, Dataset]] = {
    "web": _by_name(
        [
            *(web.fineweb, web.fineweb_sample_10bt, web.fineweb_edu, web.fineweb_edu_sample_10bt, web.dclm_baseline),
            *web.dolma.values(),
            *web.nemotron_cc.values(),
            *web.nemotron_cc_v2.values(),
            *web.nemotron_cc_v2_1.values(),
        ]
    ),
    "code": _by_name([code.starcoderdata]),
    "math": _by_name([*math.proof_pile_2.values(), *math.finemath.values()]),
    "encyclopedia": _by_name(
        [
            *(encyclopedia.wikipedia, encyclopedia.stackexchange),
            *(encyclopedia.ar5iv_no_problem, encyclopedia.ar5iv_warning),
            *(encyclopedia.common_pile_wikimedia, encyclopedia.common_pile_stackexchange),
        ]
    ),
    "evaluation": _by_name([*evaluation.paloma.values(), *evaluation.uncheatable_eval.values()]),
    "chats": _by_name(chats.values()),
    "preferences": _by_name(preferences.values()),
}
"""Family -> name -> data set."""

CATALOGUE: Mapping[str, Dataset] = Family(
    {name: dataset for datasets in FAMILIES.values() for name, dataset in datasets.items()}
)
"""Every known data set by name."""
