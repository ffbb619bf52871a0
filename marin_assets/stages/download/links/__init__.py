"""Links of pages: addresses in one form, and the links to pages that are not fetched yet.

addresses.py          one form of an address, its host and its domain; the reasons of what is no address
anchors.py            the links of an HTML page with their text, in linear time
extract_outlinks.py   the stage: pages become rows of links
seen_addresses.py     hashes of the addresses of earlier crawls and of corpora
sorted_lines.py       lines sorted in bounded memory
"""
