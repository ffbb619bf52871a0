"""Equal texts: hashes, groups of equal hashes, and the copies that are removed. For whole documents and paragraphs."""
