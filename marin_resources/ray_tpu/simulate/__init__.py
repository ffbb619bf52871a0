"""Steps on slices on a simulated clock: what checkpoints, sizes of slices and preemptions do to goodput.

trace    when hosts are taken and come back: from a file, or drawn
job      one step on one slice: the slice runner's own loop, its causes, pauses, budgets and ledger
study    many slices, policies and sizes; Young's and Daly's intervals
"""
