"""Texts to measure perplexity on: Paloma, Uncheatable Eval. `default_perplexity` has a layout for each."""

from __future__ import annotations

from marin_assets.datasets.dataset import Corpus, HubFiles, ListedFiles, by_name

_PALOMA_FOLDERS = {
    "4chan": "4chan_meta_sep",
    **{
        name: name
        for name in (
            "c4_100_domains",
            "c4_en",
            "dolma-v1_5",
            "dolma_100_programing_languages",
            "dolma_100_subreddits",
            "falcon-refinedweb",
            "gab",
            "m2d2_s2orc_unsplit",
            "m2d2_wikipedia_unsplit",
            "manosphere_meta_sep",
            "mc4",
            "ptb",
            "redpajama",
            "twitterAAE_HELM_fixed",
            "wikitext_103",
        )
    },
}
paloma = by_name(
    [
        Corpus(
            name=f"paloma/{subset}",
            files=HubFiles(id="allenai/paloma", revision="65cd6fc", globs=(f"{folder}/val/val*.jsonl.gz",), gated=True),
            licence="AI2 ImpACT License, Low Risk (some sources have their own)",
            metadata=("subdomain",),
            facts=("marin experiments/paloma.py: id, revision, globs; card: gated, licence",),
        )
        for subset, folder in _PALOMA_FOLDERS.items()
    ],
    "paloma",
)
"""Paloma by source, the split "val"."""

_DUMP, _COMMIT = "20251101to20251115", "bb9342763ebbc8c4eb65c34450f291f2f2e9b1d2"
_CHARACTERS = {
    "ao3_english": 4_952_369,
    "arxiv_computer_science": 4_927_405,
    "arxiv_physics": 5_105_166,
    "bbc_news": 3_413_428,
    "github_cpp": 3_902_734,
    "github_python": 4_477_291,
    "wikipedia_english": 2_799_829,
}
uncheatable_eval = by_name(
    [
        Corpus(
            name=f"uncheatable_eval/{domain}",
            files=ListedFiles(
                base=f"https://raw.githubusercontent.com/Jellyfish042/uncheatable_eval/{_COMMIT}/data/",
                names=(f"{domain}_{_DUMP}.json",),
                homepage="https://github.com/Jellyfish042/uncheatable_eval",
            ),
            licence=None,  # the code has MIT; the texts are those of their sites
            bytes=characters,
            is_json_lists=True,
            facts=(
                "marin experiments/evals/exp1600_uncheatable_evals.py: domains",
                "repository: commit, names, shape, characters, which are ASCII",
            ),
        )
        for domain, characters in _CHARACTERS.items()
    ],
    "uncheatable_eval",
)
"""Uncheatable Eval by domain: texts of the first half of November 2025."""
