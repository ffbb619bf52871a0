"""Create the common kinds of steps: default_download -> default_tokenize -> default_train -> default_eval,
and default_tokenize_chats -> default_sft, default_tokenize_preferences -> default_dpo, grid -> default_comparison;
default_text_files, default_warc, default_wet, default_captures, default_crawl, default_wikipedia, default_generation,
default_datashop, default_upload.

The names are Marin's. Each function returns a Step and does nothing else. Steps are named by kind ("raw/",
"tokenized/", "checkpoints/", "evaluation/"). The requirements of a step (extras, resources, resumability) are set here,
so an experiment states only its recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marin_assets.defaults.crawl import default_captures, default_warc, default_wet
from marin_assets.defaults.data import (
    default_download,
    default_snapshot,
    default_text_files,
    default_tokenize,
    default_tokenize_chats,
    default_tokenize_preferences,
    default_tokenizer,
)
from marin_assets.defaults.datashop import Datashop, default_datashop
from marin_assets.defaults.evaluation import (
    default_checkpoint_evals,
    default_eval,
    default_perplexity,
)
from marin_assets.defaults.generation import default_generation
from marin_assets.defaults.hub import default_download_hf, default_upload
from marin_assets.defaults.own_crawl import OwnCrawl, default_crawl
from marin_assets.defaults.python_text import PythonText, default_docstring_chats, default_python_text
from marin_assets.defaults.report import default_model_comparison, default_report
from marin_assets.defaults.sweep import GridPoint, default_comparison, grid
from marin_assets.defaults.training import (
    default_anneal,
    default_dpo,
    default_sft,
    default_train,
)
from marin_assets.defaults.wikipedia import default_wikipedia

__all__ = [
    "Datashop",
    "GridPoint",
    "OwnCrawl",
    "PythonText",
    "default_anneal",
    "default_captures",
    "default_checkpoint_evals",
    "default_comparison",
    "default_crawl",
    "default_datashop",
    "default_docstring_chats",
    "default_download",
    "default_download_hf",
    "default_dpo",
    "default_eval",
    "default_generation",
    "default_model_comparison",
    "default_perplexity",
    "default_python_text",
    "default_report",
    "default_sft",
    "default_snapshot",
    "default_text_files",
    "default_tokenize",
    "default_tokenize_chats",
    "default_tokenize_preferences",
    "default_tokenizer",
    "default_train",
    "default_upload",
    "default_warc",
    "default_wet",
    "default_wikipedia",
    "grid",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise the error of a name that this package lacks; if it is Marin's, a sentence with the one here."""
        from marin_assets.step.marins_sentences import missing_name

        raise missing_name(__name__, name)
