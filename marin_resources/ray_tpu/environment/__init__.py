"""What a step requires of its process: extras, further packages, secrets.

May import ray_tpu's requirements, settings and secret_manager.
"""
