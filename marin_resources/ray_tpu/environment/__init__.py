"""The requirements of a step on its process: extras, further packages, secrets, devices.

May import ray_tpu's requirements, settings, secret_manager, hardware and step_api.
"""
