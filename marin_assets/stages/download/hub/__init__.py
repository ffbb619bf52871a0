"""Files of the Hugging Face hub: a commit's listing, the choice among its files, and a verified transfer of each.

download_hf.py    the stage
repository.py     names of a repository, its addresses and its files
online.py         the hub over HTTP, and its refusals as sentences; a source
mirror.py         a folder or bucket with the hub's paths; the other source
listing.py        the files of a commit that globs choose; splits.py: the globs of a config and a split
transfer.py       checksums of a commit's files; the transfer by ranges is in ../web
budget.py         the limit of requests, for all workers of a step
"""
