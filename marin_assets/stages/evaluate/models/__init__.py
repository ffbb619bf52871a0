"""A model with lm-eval's interface, whatever computes it. Importing a module of this package imports lm-eval.

May import marin_assets.inference; not the stages that evaluate.
"""
