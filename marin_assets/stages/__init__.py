"""Stages: the functions of steps, one folder per kind of work, each stage a config dataclass and a plain function.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
