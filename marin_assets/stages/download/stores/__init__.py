"""Files of servers, buckets and disks, for the transfer: each store reads a range of a file in one state of it.

access.py           rights and limits at a store
source_file.py      a file to copy, and the expected checksums of its content
remote.py           a store for the transfer; web.py, s3.py, gcs.py and other.py read ranges
checksum_files.py   files of checksums, such as SHA256SUMS
small_files.py      lists and files of checksums, read whole
"""
