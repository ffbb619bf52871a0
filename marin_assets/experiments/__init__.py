"""Experiments: DAGs of steps, one experiment per file, each with a function `steps()`.

May import anything; nothing imports this folder, whose files are found by their names.
"""
