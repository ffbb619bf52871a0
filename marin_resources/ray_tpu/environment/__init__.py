"""The requirements of a step on its process: extras, further packages, secrets.

May import ray_tpu's requirements, settings and secret_manager.
"""
