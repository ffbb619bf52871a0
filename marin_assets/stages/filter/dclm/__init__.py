"""The heuristics of DCLM-Baseline: web addresses, Gopher's rules as DCLM has them, and lines.

Li et al. 2024, arXiv:2406.11794, as implemented in github.com/mlfoundations/dclm, baselines/mappers.

May import the other modules of the stage's package but for its registry.
"""
