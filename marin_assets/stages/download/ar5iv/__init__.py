"""ar5iv: papers of arXiv that LaTeXML has converted to HTML, in zip archives.

read_ar5iv.py     the stage: members of the archives become pages, documents whose text is HTML
zip_directory.py  the members of an archive by its directory, which is read once
zip_member.py     the content of one member, in bounded memory, or the reason why it has none
papers.py         a member's name as the id of a paper
listing.py        the papers of an archive in columns, repeated ones and damaged ones marked
"""
