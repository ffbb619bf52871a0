"""Stages that find the questions of evaluations in training documents.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
