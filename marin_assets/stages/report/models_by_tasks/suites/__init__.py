"""The scores of suites of tasks: their definitions as data, the scores by the records of evaluations, a page.

Centered accuracies are those of DCLM (Li et al. 2024, arXiv 2406.11794); the better of two forms of a task is the rule
of OLMES (Gu et al. 2024, arXiv 2406.08446).
"""
