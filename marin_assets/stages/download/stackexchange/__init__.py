"""Dumps of the sites of Stack Exchange.

read_stackexchange.py  the stage: the posts of dumps become pages, a thread each
sites.py               the files of a dump that have posts, and the site of each
dump_rows.py           the rows of a dump, a 7z archive or an XML file that is read once
posts.py               one row as a post, or the reason why it is none
runs.py                posts on their way to their thread: sorted files, and the ranges that are read of them
threads.py             the posts of one thread as a page
"""
