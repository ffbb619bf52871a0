"""Stages that split, sample and count documents. Every choice is a hash of a name, independent of shards.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
