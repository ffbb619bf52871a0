"""A Google Cloud Storage of our own, for tests and the rehearsal: on loopback, in memory or with a file behind it.

It speaks the JSON API as gcsfs, google-cloud-storage and TensorStore use it: generations, preconditions, pages of
listings, simple, multipart and resumable uploads, ranges, copies, composed objects and batches, with GCS's own status
codes and words. What it does not know it refuses with 501. Left out: versioning, access control, encryption keys, the
XML API, and the unpacking of objects that were stored with gzip as their encoding.

One thread serves, and nothing waits between a condition and its effect: every request is atomic.
"""
