"""Who and what may: service accounts, the policy of the project, secrets, tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from fake_google.refusals import RefusalError, exists
from fake_google.world import Json, World


class Identity:
    def __init__(self, world: World) -> None:
        self.world = world

    def methods(self) -> dict[str, Any]:
        return {
            "iam.projects.serviceAccounts.get": self.get_account,
            "iam.projects.serviceAccounts.create": self.create_account,
            "cloudresourcemanager.projects.get": self.get_project,
            "secretmanager.projects.secrets.versions.access": self.access_secret,
        }

    def add_account(self, name: str) -> str:
        """A service account of the project; its email."""
        email = f"{name}@{self.world.project}.iam.gserviceaccount.com"
        where = f"projects/{self.world.project}"
        self.world.accounts[email] = {
            "name": f"{where}/serviceAccounts/{email}",
            "projectId": self.world.project,
            "email": email,
        }
        return email

    def get_account(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.accounts, at["serviceAccountsId"])

    def create_account(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name = body.get("accountId", "")
        email = f"{name}@{self.world.project}.iam.gserviceaccount.com"
        if email in self.world.accounts:
            raise exists(email)
        return self.world.accounts[self.add_account(name)]

    def get_project(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        project = at["projectId"]
        if project != self.world.project:  # Google does not tell whether there is one
            raise RefusalError(403, "The caller does not have permission")
        return {"projectId": project, "projectNumber": "1", "lifecycleState": "ACTIVE", "name": project}

    def access_secret(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name = at["secretsId"]
        if name not in self.world.secrets:
            raise RefusalError(404, f"Secret [projects/1/secrets/{name}] not found or has no versions.")
        data = base64.b64encode(self.world.secrets[name].encode()).decode()
        return {"name": f"projects/1/secrets/{name}/versions/1", "payload": {"data": data}}
