"""Drift: differences between an output's record and the present that its version does not cover.

May import the ground floor (`output`, `settings`, `process`) alone: it reads source files, and no store.
"""
