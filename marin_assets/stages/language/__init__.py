"""Stages that identify the language of documents.

May import marin_assets.documents, marin_assets.inference, marin_assets.step and marin_resources; not Dagster, Ray or
another stage.
"""
