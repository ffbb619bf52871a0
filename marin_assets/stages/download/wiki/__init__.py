"""Dumps of Wikipedia and its sister wikis.

read_wiki_html.py  the stage: articles of HTML dumps become pages, documents whose text is HTML
dump_lines.py      the lines of a dump, a tar archive that is read once
articles.py        one line as a page, or the reason why it is none
versions.py        articles that occur twice

read_wiki_xml.py   the stage: articles of XML dumps become documents whose text is wikitext
xml_files.py       the parts of a dump, their indexes and checksums
xml_streams.py     the text of a part from an offset on, by bzip2 streams
xml_pieces.py      the pages of a range of a part
xml_head.py        the encoding of a dump, and its wiki
xml_pages.py       one page as an article, or the reason why it is none
"""
