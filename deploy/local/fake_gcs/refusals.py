"""Answers of Google Cloud Storage when it refuses a request, in its own words."""

from __future__ import annotations

import json


class RefusalError(Exception):
    """An answer that is not a yes."""

    def __init__(self, status: int, reason: str, message: str, *, location: str = "") -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.location = status, reason, message, location

    def body(self) -> bytes:
        """The JSON of the answer; empty with 304."""
        if self.status == 304:
            return b""
        detail = {"message": self.message, "domain": "global", "reason": self.reason}
        if self.location:
            detail |= {"locationType": "header" if "-" in self.location else "parameter", "location": self.location}
        return json.dumps({"error": {"code": self.status, "message": self.message, "errors": [detail]}}).encode()


def no_such_bucket() -> RefusalError:
    return RefusalError(404, "notFound", "The specified bucket does not exist.")


def no_such_object(bucket: str, name: str) -> RefusalError:
    return RefusalError(404, "notFound", f"No such object: {bucket}/{name}")


def condition_not_met() -> RefusalError:
    message = "At least one of the pre-conditions you specified did not hold."
    return RefusalError(412, "conditionNotMet", message, location="If-Match")


def not_modified() -> RefusalError:
    return RefusalError(304, "notModified", "")


def invalid(message: str, *, location: str = "") -> RefusalError:
    return RefusalError(400, "invalid", message, location=location)


def required(parameter: str) -> RefusalError:
    return RefusalError(400, "required", "Required", location=parameter)


def no_user_project() -> RefusalError:
    return RefusalError(400, "required", "Bucket is a requester pays bucket but no user project provided.")


def conflict(message: str) -> RefusalError:
    return RefusalError(409, "conflict", message)


def not_implemented(feature: str) -> RefusalError:
    return RefusalError(501, "notImplemented", f"The GCS that tests run against does not know {feature}.")


def range_not_satisfiable() -> RefusalError:
    return RefusalError(416, "requestedRangeNotSatisfiable", "Request range not satisfiable", location="Range")
