"""Transfers from servers of the web, for all stages that download.

faults.py         failures that pass, and the tries
answers.py        answers with a range of a file, checked against its listing
tally.py          counts of a transfer, and its progress in the log
"""
