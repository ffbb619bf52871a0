"""Transfers from servers and stores, for all stages that download.

transfer.py       files by ranges, resumed at a byte and verified
client.py         requests to servers, within their limits, and the limit of connections of a machine
faults.py         failures that pass, and the tries
answers.py        answers with a range of a file, checked against its listing
pace.py           the limit of requests in a second, of a step
tally.py          counts of a transfer, and its progress in the log
"""
