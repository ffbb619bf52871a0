"""PubMed and PMC, the archives of the life sciences: citations with abstracts, and whole articles.

read_pubmed.py  the stage: citations become documents of title and abstract; citations.py: one citation
read_pmc.py     the stage: articles become pages, documents whose text is JATS; articles.py: one article
streams.py      the bytes of a file, read once, with its MD5
latest.py       texts that occur several times: the latest file has the valid one
sources.py      the files in the order of their publication, and their texts in two phases
"""
