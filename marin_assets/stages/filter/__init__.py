"""Heuristic filters: what a document's words, lines and repetitions say of its quality.

A family is one file: a frozen dataclass of thresholds, and a function (statistics, thresholds) -> what it says. Named
sets of thresholds lie in `thresholds/`. `filter_documents` is the stage that applies families in order.
"""
