"""Create the common kinds of steps: default_download -> default_tokenize -> default_train -> default_eval,
and default_conversations -> default_tokenize_chats -> default_sft, default_preferences -> default_tokenize_preferences
-> default_dpo, grid -> default_comparison. `__all__` has the others: sources such as default_warc,
what judges documents such as default_filters, generation, judges of answers such as default_judge, reports, uploads.

The names are Marin's. Each function returns a Step and does nothing else. Steps are named by kind ("raw/",
"tokenized/", "checkpoints/", "evaluation/"). The requirements of a step (extras, resources, resumability) are set here,
so an experiment states only its recipe.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from marin_assets.defaults.data import (
    default_snapshot,
    default_tokenize,
    default_tokenize_chats,
    default_tokenize_preferences,
    default_tokenizer,
)
from marin_assets.defaults.datashop import Datashop, default_datashop
from marin_assets.defaults.evaluation import (
    default_checkpoint_evals,
    default_checkpoint_perplexity,
    default_endpoint_eval,
    default_eval,
    default_model_comparison,
    default_perplexity,
    default_report,
    default_suite_scores,
)
from marin_assets.defaults.generation import default_generation
from marin_assets.defaults.python_text import (
    PythonText,
    default_docstring_chats,
    default_docstring_crawl,
    default_python_text,
)
from marin_assets.defaults.sweep import GridPoint, default_comparison, grid
from marin_assets.defaults.training import (
    default_anneal,
    default_dpo,
    default_sft,
    default_train,
)

if TYPE_CHECKING:
    from marin_assets.defaults.contamination import default_contamination, default_questions
    from marin_assets.defaults.conversations import default_conversations, default_preferences, default_threads
    from marin_assets.defaults.curation import (
        default_consolidate,
        default_filters,
        default_languages,
        default_near_duplicates,
        default_personal_data,
    )
    from marin_assets.defaults.downloads import (
        default_download,
        default_download_listed,
        default_package_files,
        default_text_files,
    )
    from marin_assets.defaults.inspect_tasks import default_inspect_eval
    from marin_assets.defaults.isoflop_sweep import isoflop
    from marin_assets.defaults.judging import default_answers, default_grades, default_judge
    from marin_assets.defaults.needles import default_needle_map, default_needles
    from marin_assets.defaults.overlap import default_overlap
    from marin_assets.defaults.reinforcement import default_rl, default_rl_eval
    from marin_assets.defaults.scaling import Forecast, default_ladder, default_scaling_law
    from marin_assets.defaults.scaling_runs import default_forecast_check, default_scaling_runs
    from marin_assets.defaults.sources.ar5iv import default_ar5iv
    from marin_assets.defaults.sources.crawl import default_captures, default_warc, default_wet
    from marin_assets.defaults.sources.hub import default_download_hf, default_upload
    from marin_assets.defaults.sources.nemotron import default_nemotron_cc
    from marin_assets.defaults.sources.own_crawl import OwnCrawl, default_crawl
    from marin_assets.defaults.sources.pubmed import default_pmc, default_pubmed
    from marin_assets.defaults.sources.stackexchange import default_stackexchange
    from marin_assets.defaults.sources.wikipedia import default_wikipedia
    from marin_assets.defaults.sources.wikipedia_xml import default_wikipedia_xml
    from marin_assets.defaults.speedruns import default_recipe_comparison, default_speedrun, default_speedrun_board
    from marin_assets.stages.download.stores.access import StoreAccess
    from marin_assets.stages.report.speedruns.speedrun import Author

MODULES = {
    "contamination": "default_contamination default_questions",
    "conversations": "default_conversations default_preferences default_threads",
    "curation": ("default_consolidate default_filters default_languages default_near_duplicates default_personal_data"),
    "downloads": "default_download default_download_listed default_package_files default_text_files",
    "needles": "default_needle_map default_needles",
    "inspect_tasks": "default_inspect_eval",
    "judging": "default_answers default_grades default_judge",
    "overlap": "default_overlap",
    "reinforcement": "default_rl default_rl_eval",
    "isoflop_sweep": "isoflop",
    "scaling": "Forecast default_ladder default_scaling_law",
    "scaling_runs": "default_forecast_check default_scaling_runs",
    "sources.crawl": "default_captures default_warc default_wet",
    "sources.ar5iv": "default_ar5iv",
    "sources.pubmed": "default_pmc default_pubmed",
    "sources.stackexchange": "default_stackexchange",
    "sources.wikipedia": "default_wikipedia",
    "sources.wikipedia_xml": "default_wikipedia_xml",
    "sources.hub": "default_download_hf default_upload",
    "sources.nemotron": "default_nemotron_cc",
    "sources.own_crawl": "OwnCrawl default_crawl",
    "speedruns": "default_recipe_comparison default_speedrun default_speedrun_board",
}
LATE = {name: f"{__name__}.{module}" for module, names in MODULES.items() for name in names.split()}
LATE["Author"] = "marin_assets.stages.report.speedruns.speedrun"
LATE["StoreAccess"] = "marin_assets.stages.download.stores.access"
"""Names that are imported when they are used, with their modules: sources of data, of which an experiment has few."""

__all__ = [
    "Author",
    "Datashop",
    "Forecast",
    "GridPoint",
    "OwnCrawl",
    "PythonText",
    "StoreAccess",
    "default_anneal",
    "default_answers",
    "default_ar5iv",
    "default_captures",
    "default_checkpoint_evals",
    "default_checkpoint_perplexity",
    "default_comparison",
    "default_consolidate",
    "default_contamination",
    "default_conversations",
    "default_crawl",
    "default_datashop",
    "default_docstring_chats",
    "default_docstring_crawl",
    "default_download",
    "default_download_hf",
    "default_download_listed",
    "default_dpo",
    "default_endpoint_eval",
    "default_eval",
    "default_filters",
    "default_forecast_check",
    "default_generation",
    "default_grades",
    "default_inspect_eval",
    "default_judge",
    "default_ladder",
    "default_languages",
    "default_model_comparison",
    "default_near_duplicates",
    "default_needle_map",
    "default_needles",
    "default_nemotron_cc",
    "default_overlap",
    "default_package_files",
    "default_perplexity",
    "default_personal_data",
    "default_pmc",
    "default_preferences",
    "default_pubmed",
    "default_python_text",
    "default_questions",
    "default_recipe_comparison",
    "default_report",
    "default_rl",
    "default_rl_eval",
    "default_scaling_law",
    "default_scaling_runs",
    "default_sft",
    "default_snapshot",
    "default_speedrun",
    "default_speedrun_board",
    "default_stackexchange",
    "default_suite_scores",
    "default_text_files",
    "default_threads",
    "default_tokenize",
    "default_tokenize_chats",
    "default_tokenize_preferences",
    "default_tokenizer",
    "default_train",
    "default_upload",
    "default_warc",
    "default_wet",
    "default_wikipedia",
    "default_wikipedia_xml",
    "grid",
    "isoflop",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of LATE. Raise the error of a name that this package lacks; of Marin's, with the one here."""
        if name in LATE:
            return getattr(importlib.import_module(LATE[name]), name)
        from marin_assets.step.marins_sentences import missing_name

        raise missing_name(__name__, name)
