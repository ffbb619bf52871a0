"""Stages that train tokenizers, and tokenize documents into the caches that training reads.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
