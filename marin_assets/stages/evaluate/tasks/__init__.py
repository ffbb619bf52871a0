"""The YAML files of the held-out tasks, which lm_eval.py reads.

Holds no code, and imports nothing.
"""
