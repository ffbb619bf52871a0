"""WARC files: their records with exact borders, and the pages in them.

record.py         one record, the damage in place of one, and the parser of a stream of records
members.py        the records of gzip files, from any byte on; streams.py: of files of any kind
http_message.py   the HTTP response in a record
"""
