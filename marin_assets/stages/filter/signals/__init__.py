"""Signals: numbers that describe a document's text, under the names of the project that published them.

May import `marin_assets.step`, the statistics and thresholds of `filter`, and numpy (inside functions); no stage.
"""
