"""Google Cloud on loopback, as far as clusters need it: Compute Engine, Cloud TPU, IAM, projects, Secret Manager.

A request goes through `HTTPS_PROXY` to the real host's name, so clients are as they are: Google's Python client, Ray's
provider, `requests` with google-auth, gcloud. What a request may hold is decided by Google's own discovery documents,
which google-api-python-client has; states change as Google's documentation says.
"""
