"""Stages in which a model answers instructions, and a model judges the answers: in pairs, or one by one with a grade.

May import marin_assets.documents, marin_assets.inference, marin_assets.step and marin_resources; not Dagster, Ray or
another stage.
"""
