"""Processes that compete to write the same outputs, while they are killed, paused and lied to; and what must hold.

    plan      which outputs there are, what is in their files, how often what goes wrong
    journal   what happened, one line each, appended by all
    faults    wrong clocks, answers that are lost, points at which a worker dies or stops
    worker    one of them: look, watch, claim, write, publish
    parent    starts them, kills, pauses and restarts them
    verdict   reads the journal and the store: counts, and violations

`python -m one_writer PREFIX SECONDS SEED PROCESSES` prints the verdict as JSON.
"""
