"""What a step requires of its process: extras, further packages, secrets.

May import settings and secret_manager.
"""
