"""Speedruns: the cost of a training and the value of its model, as entries of one file format; tables and plots.

speedrun         the step that writes the entry of a training
entry, read, faults   the file, `speedrun_results.json`, which is Marin's; its readers; what is wrong in one
board            the page of many entries; compare_recipes, that of trainings by label
"""
