"""The values of Dagster's chart are ones that it has. No Helm was tried."""

from __future__ import annotations

import copy
import importlib.resources
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import pytest
import yaml
from kubernetes_files import VALUES
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from running import ROOT


def of_kubernetes(name: str) -> dict[str, str]:
    return {"$ref": f"kubernetes:definitions#/definitions/io.k8s.api.core.v1.{name}"}


def fields(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def each(item: object) -> dict[str, Any]:
    return {"type": "array", "items": item}


TEXT, NUMBER, FLAG, NO = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"const": False}
PICTURE = fields(repository=TEXT, tag=TEXT, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]})
ACCOUNT = fields(create=FLAG, name=TEXT, annotations={"type": "object"})
POD = {
    "image": PICTURE,
    "env": each(of_kubernetes("EnvVar")),
    "envConfigMaps": each(of_kubernetes("ConfigMapEnvSource")),
    "podSecurityContext": of_kubernetes("PodSecurityContext"),
    "securityContext": of_kubernetes("SecurityContext"),
    "resources": of_kubernetes("ResourceRequirements"),
    "livenessProbe": of_kubernetes("Probe"),
    "volumes": each(of_kubernetes("Volume")),
    "volumeMounts": each(of_kubernetes("VolumeMount")),
}
PROBE = fields(enabled=FLAG, periodSeconds=NUMBER, timeoutSeconds=NUMBER, failureThreshold=NUMBER)
CHART = fields(
    **{
        "global": fields(
            dagsterHome=TEXT,
            postgresqlSecretName=TEXT,
            serviceAccountName=TEXT,
            celeryConfigSecretName=TEXT,
        ),
        "dagster-user-deployments": fields(
            enabled=FLAG,
            enableSubchart=FLAG,
            rbacEnabled=FLAG,
            serviceAccount=ACCOUNT,
            deployments=each(
                fields(
                    name=TEXT,
                    port=NUMBER,
                    dagsterApiGrpcArgs=each(TEXT),
                    includeConfigInLaunchedRuns=fields(enabled=FLAG),
                    readinessProbe=PROBE,
                    **POD,
                )
            ),
        ),
    },
    generatePostgresqlPasswordSecret=FLAG,
    generateCeleryConfigSecret=FLAG,
    rbacEnabled=FLAG,
    serviceAccount=ACCOUNT,
    telemetry=fields(enabled=FLAG),
    migrate=fields(enabled=FLAG),
    postgresql=fields(
        enabled=NO,
        postgresqlHost=TEXT,
        postgresqlUsername=TEXT,
        postgresqlDatabase=TEXT,
        service=fields(port=NUMBER),
        image=fields(registry=TEXT, **PICTURE["properties"]),
    ),
    rabbitmq=fields(enabled=NO),
    redis=fields(enabled=NO),
    flower=fields(enabled=NO),
    ingress=fields(enabled=NO),
    dagsterWebserver=fields(
        replicaCount={"const": 0},
        enableReadOnly=NO,
        workspace=fields(enabled=FLAG, servers=each({}), externalConfigmap=TEXT),
    ),
    dagsterDaemon=fields(
        enabled=FLAG, initContainerResources=of_kubernetes("ResourceRequirements"), heartbeatTolerance=NUMBER, **POD
    ),
    busybox=fields(image=PICTURE),
)
"""What of the chart's values is in use here, as its templates and its schema have it: nothing else is accepted.

The chart has a schema of its own, which Helm holds values to. It is in no package of a registry, so it is not here:
`DAGSTER_CHART=folder` names an unpacked chart, and then values.yaml is held to its schema too."""


@cache
def kubernetes_definitions(uri: str) -> Resource[Any]:
    """Ours are strict. The chart adds `enabled` to Kubernetes' probes, so what it refers to allows more fields."""
    folder = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema"
    kind = "-local-strict" if uri.startswith("kubernetes:") else "-local"
    newest = max(one.name for one in folder.iterdir() if one.name.endswith(kind))
    contents = json.loads((folder / newest / "_definitions.json").read_text())
    contents["definitions"] = contents["$defs"]  # as older schemas call them
    return Resource.from_contents(contents, default_specification=DRAFT202012)


def values_are_valid(values: object, schema: Mapping[str, Any]) -> None:
    """Raises ValidationError. What the schema refers to elsewhere is Kubernetes' definitions, which are here."""
    registry: Registry[Any] = Registry(retrieve=kubernetes_definitions)  # type: ignore[call-arg]
    jsonschema.Draft202012Validator(schema, registry=registry).validate(values)


def test_the_values_are_ones_that_the_chart_has() -> None:
    values_are_valid(VALUES, CHART)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("dagsterDaemon", "liveness"), {}),
        (("dagsterDaemon", "securityContext", "readOnly"), True),
        (("dagsterDaemon", "resources", "limits"), "2Gi"),
        (("global", "dagsterInstanceConfigmap"), "marin-dagster-yaml"),
        (("ingress", "enabled"), True),
    ],
)
def test_a_mistake_in_the_values_is_refused(place: tuple[str, ...], value: object) -> None:
    wrong = copy.deepcopy(VALUES)
    within = wrong
    for name in place[:-1]:
        within = within[name]
    within[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        values_are_valid(wrong, CHART)


def merged(defaults: Any, ours: Any) -> Any:
    """As Helm merges values: maps by key, everything else replaced."""
    if not (isinstance(defaults, dict) and isinstance(ours, dict)):
        return ours
    return {**defaults, **{name: merged(defaults.get(name), value) for name, value in ours.items()}}


@pytest.mark.skipif(
    "DAGSTER_CHART" not in os.environ, reason="DAGSTER_CHART does not name an unpacked chart of Dagster"
)
def test_the_chart_itself_takes_the_values() -> None:
    chart = Path(os.environ["DAGSTER_CHART"])
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    values_are_valid(merged(defaults, VALUES), json.loads((chart / "values.schema.json").read_text()))


def test_the_chart_is_of_the_locked_dagster() -> None:
    for page in ("deploy/kubernetes/values.yaml", "docs/how-to/deploy-on-kubernetes.md"):
        assert set(re.findall(r"--version (\S+)", (ROOT / page).read_text())) == {dg.__version__}
