"""Experiments: DAGs of steps, one file each, with a function `steps()`.

May import what marin_assets exports, its defaults and stages, and marin_resources. Nothing imports this folder but the
loader in marin_assets/catalog/experiments_folder.py.
"""
