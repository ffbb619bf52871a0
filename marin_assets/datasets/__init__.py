"""Data sets that are known: their files at a commit, columns, licences and sizes, and the steps that read them.

from marin_assets.datasets import chats, dolma, fineweb_edu, preferences

fineweb_edu.documents(), dolma["wiki"].tokenized(tokenizer), chats["allenai/tulu-3-sft-mixture"].tokenized(…),
preferences["allenai/olmo-2-1124-7b-preference-mix"].preferences()

May import marin_assets.defaults, its stages, marin_assets.step and marin_resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marin_assets.datasets.catalogue import CATALOGUE, FAMILIES
from marin_assets.datasets.code import starcoderdata
from marin_assets.datasets.conversational import Chats, MessageTrees, Preferences
from marin_assets.datasets.dataset import Corpus, Dataset, HubFiles, ListedFiles
from marin_assets.datasets.encyclopedia import (
    ar5iv_no_problem,
    ar5iv_warning,
    common_pile_stackexchange,
    common_pile_wikimedia,
    stackexchange,
    wikipedia,
)
from marin_assets.datasets.evaluation import paloma, uncheatable_eval
from marin_assets.datasets.instructions import chats
from marin_assets.datasets.math import finemath, proof_pile_2
from marin_assets.datasets.pairs import preferences
from marin_assets.datasets.web import (
    dclm_baseline,
    dolma,
    fineweb,
    fineweb_edu,
    fineweb_edu_sample_10bt,
    fineweb_sample_10bt,
    nemotron_cc,
    nemotron_cc_v2,
    nemotron_cc_v2_1,
)

__all__ = [
    "CATALOGUE",
    "FAMILIES",
    "Chats",
    "Corpus",
    "Dataset",
    "HubFiles",
    "ListedFiles",
    "MessageTrees",
    "Preferences",
    "ar5iv_no_problem",
    "ar5iv_warning",
    "chats",
    "common_pile_stackexchange",
    "common_pile_wikimedia",
    "dclm_baseline",
    "dolma",
    "finemath",
    "fineweb",
    "fineweb_edu",
    "fineweb_edu_sample_10bt",
    "fineweb_sample_10bt",
    "nemotron_cc",
    "nemotron_cc_v2",
    "nemotron_cc_v2_1",
    "paloma",
    "preferences",
    "proof_pile_2",
    "stackexchange",
    "starcoderdata",
    "uncheatable_eval",
    "wikipedia",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise the error of a name that this package lacks; if it is Marin's, a sentence with the one here."""
        from marin_assets.step.marins_sentences import missing_name

        raise missing_name(__name__, name)
