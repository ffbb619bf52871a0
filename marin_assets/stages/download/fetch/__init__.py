"""A crawl of one's own: listed pages are fetched politely, as WARC files.

fetch_pages.py   the stage: the crawl from the list to its outputs; config.py: its config
listing.py       the addresses of the list, once, in the order in which hosts are visited
crawler.py       threads that fetch: robots, redirects, failures, an outcome for every address
frontier.py      a queue for each host, and a heap of the times at which hosts may be visited
slots.py         addresses of servers, whose turns hosts share
robots.py        rules of robots.txt (RFC 9309)
exchange.py      one request and its answer, within limits of bytes and of time by bytes
guard.py         addresses of hosts, of which only public ones are connected
warc_records.py  WARC records of an exchange
batches.py       what is complete, in files that a crawl that was killed reads
journal.py       the batch that is not complete yet, on a disk
publish.py       the batches become the outputs
"""
