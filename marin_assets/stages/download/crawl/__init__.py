"""Files of a web crawl, as Common Crawl has them: WARC, WET, and the index.

read_warc.py        the stage: responses become pages, documents whose text is HTML; pages.py: one response
read_wet.py         the stage: texts of WET files become documents
select_captures.py  the stage: the index, cdx.py or parquet, is queried for captures
fetch_captures.py   the stage: selected captures become pages, each by a range of its file
crawl_input.py      the fields of all stages that read files
files.py            the files of a folder, a bucket or a list of paths; crawl_file.py: one of them
block_reader.py     the bytes of a file by offset, in a store; web.py: on a server
shards.py           ranges of bytes as shards, and the records of each; damage.py: those that are rejected
two_phases.py       hidden parts of each file, which become output files without what is not valid
"""
