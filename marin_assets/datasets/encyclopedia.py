"""Articles, questions and papers: Wikipedia, StackExchange, ar5iv."""

from __future__ import annotations

from marin_assets.datasets.dataset import Corpus, HubFiles

_RETROSPECTIVE = "marin docs/reports/marin-8b-retro.md: id; no commit is stated there, so that of main is taken"
_COMMON_PILE = "marin experiments/common_pile/tokenize_common_pile.py: id, revision; public users' pins: the 40 digits"

wikipedia = Corpus(
    name="wikipedia",
    files=HubFiles(id="marin-community/wikipedia-markdown", revision="main"),
    licence="CC-BY-SA-4.0",
    id="id",
    facts=(_RETROSPECTIVE, "Wikimedia's terms of use: licence of the articles"),
)
"""Wikipedia as Markdown, by Marin."""
stackexchange = Corpus(
    name="stackexchange",
    files=HubFiles(id="marin-community/stackexchange-markdown", revision="main"),
    licence="CC-BY-SA-4.0 (older posts 2.5 and 3.0)",
    id="id",
    facts=(_RETROSPECTIVE, "StackExchange's dump: ContentLicense of a post, by its date"),
)
"""StackExchange as Markdown, by Marin."""
ar5iv_no_problem = Corpus(
    name="ar5iv-no-problem",
    files=HubFiles(id="marin-community/ar5iv-no-problem-markdown", revision="main"),
    licence=None,  # each paper has its own
    id="id",
    facts=(_RETROSPECTIVE,),
)
ar5iv_warning = Corpus(
    name="ar5iv-warning",
    files=HubFiles(id="marin-community/ar5iv-warning-markdown", revision="main"),
    licence=None,
    id="id",
    facts=(_RETROSPECTIVE,),
)
common_pile_wikimedia = Corpus(
    name="common_pile/wikimedia",
    files=HubFiles(
        id="common-pile/wikimedia_filtered",
        revision="0641bb84bd9b7162bcddf8be7836822161a9a342",
        globs=("**/*.json.gz",),
    ),
    licence="CC-BY-SA-4.0",
    id="id",
    facts=(_COMMON_PILE, "Wikimedia's terms of use: licence of the articles"),
)
"""Wikimedia's wikis in the Common Pile, at a commit."""
common_pile_stackexchange = Corpus(
    name="common_pile/stackexchange",
    files=HubFiles(
        id="common-pile/stackexchange_filtered",
        revision="c0ac7373830c688a43fc12d1988c4b19ccd884ab",
        globs=("**/*.json.gz",),
    ),
    licence="CC-BY-SA-4.0",
    id="id",
    facts=(_COMMON_PILE, "card, as public users cite it: licence"),
)
"""StackExchange in the Common Pile, at a commit."""
