"""A Google Cloud Storage of our own for tests: the parts of it that gcsfs and TensorStore use, faithfully."""
