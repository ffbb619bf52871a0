"""Measures of a training on rewards, for people: metrics, checks, plots, tables.

passes      pass@1, pass@k and staleness of a step's rollouts
health      signs of a collapse: numbers, their checks, sentences
plot        rewards, policy and waits by step
selection   rollouts by their small columns, and a few to read
tables      lessons, reasons and rollouts to read, in the result

May import its parent's rollout, and the metrics of trainings.
"""
