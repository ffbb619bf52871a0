"""Every setting: the variable, what kind of value it has, its default, its meaning, and what checks it.

docs/reference/configuration.md has a row for each, with more detail. A setting is read where it is used, from the
environment; this table is for the file (`file.py`), for the check at the start (`check.py`) and for `marin doctor`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """The kind of a value; an error sentence has the text after "expected"."""

    TEXT = "a text"
    PLACE = "a folder or a URL"
    PATH = "a path"
    URL = "an address that begins with http:// or https://"
    POSTGRES = "an address that begins with postgresql://"
    CHOICE = "one of its values"
    NUMBER = "a number"
    FLAG = "true or false"
    PAIRS = "a table of names and values"
    NODES = "a list of tables"
    NAMES = "a list of names"


@dataclass(frozen=True, kw_only=True)
class Setting:
    name: str
    """The environment variable."""
    meaning: str
    kind: Kind = Kind.TEXT
    default: str = ""
    choices: tuple[str, ...] = ()
    secret: bool = False
    """The value is never shown, and a file that has it is not for other users."""
    check: str = ""
    """The function that reads it where it is used, "module:function": it takes nothing, and raises SettingError."""
    in_file: bool = True

    @property
    def key(self) -> str:
        """The setting's name in the file."""
        return self.name.removeprefix("MARIN_").lower()

    @property
    def expected(self) -> str:
        return f"one of {', '.join(map(repr, self.choices))}" if self.choices else self.kind.value


PREFIX = "marin_resources.configuration.settings:default_prefix"
REGIONS = "marin_resources.storage.transfer.regions:declared_regions"
BROWSER = "marin_resources.configuration.data_browser"
CLUSTER = "marin_resources.ray_tpu.cluster.settings_from_env:check_environment"

SETTINGS = (
    Setting(
        name="MARIN_CONFIG",
        meaning="the file with settings; empty: none",
        kind=Kind.PATH,
        default="marin.toml in DAGSTER_HOME, if it exists",
        in_file=False,
    ),
    Setting(
        name="MARIN_PREFIX",
        meaning="the prefix of outputs",
        kind=Kind.PLACE,
        default="outputs/ in the repository",
        check=PREFIX,
    ),
    Setting(
        name="MARIN_EXPERIMENTS",
        meaning="the packages whose modules are experiments",
        kind=Kind.NAMES,
        default="marin_assets.experiments",
        check="marin_resources.configuration.code_packages:experiment_packages",
    ),
    Setting(
        name="MARIN_SENSORS",
        meaning="the packages whose modules have sensors and schedules",
        kind=Kind.NAMES,
        default="marin_sensors.deployed",
        check="marin_resources.configuration.code_packages:sensor_packages",
    ),
    Setting(
        name="MARIN_LEASE_TTL_S",
        meaning="seconds without a renewal after which a lease may be taken over",
        kind=Kind.NUMBER,
        default="90",
        check="marin_resources.storage.lease.text:ttl_s",
    ),
    Setting(
        name="MARIN_MIRROR_PREFIXES",
        meaning="the regions of the mirror and their prefixes",
        kind=Kind.PAIRS,
        default="the local prefix alone",
        check=REGIONS,
    ),
    Setting(name="MARIN_REGION", meaning="the local region", default="that of MARIN_PREFIX", check=REGIONS),
    Setting(
        name="MARIN_MIRROR_BUDGET_GB",
        meaning="GB that a step may read from other regions",
        kind=Kind.NUMBER,
        default="10",
        check="marin_resources.storage.transfer.account:default_budget_bytes",
    ),
    Setting(
        name="MARIN_FOREIGN_BUCKETS",
        meaning="buckets that a step may read from another region, where they are",
        default="none",
        check="marin_resources.storage.transfer.foreign_buckets:allowed_buckets",
    ),
    Setting(
        name="MARIN_MIRROR_PRICES",
        meaning="dollars per GB between regions",
        kind=Kind.PAIRS,
        default="Google's list",
        check=REGIONS,
    ),
    Setting(
        name="MARIN_DEVICE_PRICES",
        meaning="dollars for an hour of a device, and the day of the price",
        kind=Kind.PAIRS,
        default="none: costs are in hours",
        check="marin_resources.storage.usage.prices:declared_prices",
    ),
    Setting(
        name="MARIN_CONTACT",
        meaning="the contact that downloads name to servers: an address of a page or of mail",
        default="none: name and version alone",
        check="marin_resources.configuration.user_agent:declared_contact",
    ),
    Setting(
        name="MARIN_WEBHOOK_URL",
        meaning="the webhook that gets what breaks",
        kind=Kind.URL,
        default="no messages",
        secret=True,
    ),
    Setting(name="MARIN_UI_URL", meaning="the address of Dagster's UI", kind=Kind.URL, default="no links in messages"),
    Setting(
        name="MARIN_BROWSE_URL",
        meaning="the address of the data browser, a host name of its own",
        kind=Kind.URL,
        default="no links from Dagster's pages",
        check=f"{BROWSER}:browser_address",
    ),
    Setting(
        name="MARIN_BROWSE_PREFIXES",
        meaning="the prefixes that the data browser shows beside that of outputs",
        kind=Kind.NAMES,
        default="none",
        check=f"{BROWSER}:further_prefixes",
    ),
    Setting(
        name="MARIN_LOG_FORMAT",
        meaning="what a run prints: lines, or objects",
        kind=Kind.CHOICE,
        choices=("text", "json"),
        default="text",
    ),
    Setting(
        name="MARIN_POSTGRES_URL",
        meaning="the database of Dagster's runs and events",
        kind=Kind.POSTGRES,
        default="SQLite in DAGSTER_HOME",
        secret=True,
    ),
    Setting(
        name="MARIN_CLUSTER",
        meaning="the Ray dashboard's URL, `local`, or names of clusters in the catalogue",
        default="a local Ray in the run's process",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_TOKEN_SECRET",
        meaning="the token of the cluster in Google's Secret Manager, by its name there",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_CODE",
        meaning="the code that jobs run: of this folder, or of the nodes' image",
        kind=Kind.CHOICE,
        choices=("ship", "image"),
        default="ship",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_WORKING_DIR",
        meaning="the folder that is shipped",
        kind=Kind.PATH,
        default="the project's root",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_IMAGE_ROOT",
        meaning="path of the image's code on a node",
        default="it is an installed package",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_ENVIRONMENTS",
        meaning="Python interpreters of a node with their extras",
        kind=Kind.PAIRS,
        default="python, for all",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_START_TIMEOUT_S",
        meaning="seconds that a step may wait while no node could hold it",
        kind=Kind.NUMBER,
        default="600",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_BAD_SLICES",
        meaning="where steps report slices with a bad host; set on the nodes of a cluster",
        kind=Kind.PLACE,
        default="none",
        in_file=False,
    ),
    Setting(
        name="MARIN_CLUSTERS",
        meaning="the catalogue of the clusters on Google Cloud",
        kind=Kind.PATH,
        default="infra/clusters.toml",
        check="marin_resources.clusters.catalogue:read_catalogue",
    ),
    Setting(
        name="MARIN_CLUSTER_NODE_TYPES",
        meaning="the resources of each kind of node that the autoscaler may add",
        kind=Kind.NODES,
        default="none",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_CLUSTER_OUTAGE_TIMEOUT_S",
        meaning="seconds to wait for a cluster that does not respond",
        kind=Kind.NUMBER,
        default="1800",
        check=CLUSTER,
    ),
    Setting(
        name="MARIN_STATE_DIR",
        meaning="folder of the state and the token of `marin cluster local`",
        kind=Kind.PATH,
        default="$XDG_STATE_HOME/marin, ~/.local/state/marin",
    ),
    Setting(
        name="MARIN_SECRETS_DIR",
        meaning="a folder with one file per secret",
        kind=Kind.PATH,
        default="/run/secrets",
    ),
    Setting(name="MARIN_SECRETS_PROJECT", meaning="a Google project whose Secret Manager holds them"),
    Setting(name="MARIN_SECRET_MANAGER_URL", meaning="another Secret Manager than Google's: for tests", kind=Kind.URL),
    Setting(name="MARIN_FAKE_TPU", meaning="a step that requests a TPU runs here without one", kind=Kind.FLAG),
    Setting(
        name="MARIN_PACKAGES_DIR",
        meaning="folder of packages that steps require beyond their extras",
        kind=Kind.PATH,
        default="~/.cache/marin/packages",
    ),
    *(
        Setting(
            name=f"MARIN_{engine.upper()}_PYTHON",
            meaning=f"the Python of the environment with {name}",
            kind=Kind.PATH,
            default=f".venv-{engine} in the checkout",
        )
        for engine, name in (("torch", "torch"), ("vllm", "vLLM"), ("inspect", "Inspect"))
    ),
    Setting(
        name="RAY_AUTH_MODE",
        meaning="whether the cluster asks for a token",
        kind=Kind.CHOICE,
        choices=("token", "disabled"),
        default="a token is sent if one exists",
    ),
    Setting(
        name="RAY_AUTH_TOKEN_PATH",
        meaning="a file with the token that no other user may read",
        kind=Kind.PATH,
        default="~/.ray/auth_token",
        check=CLUSTER,
    ),
)
"""In the order of docs/reference/configuration.md."""
BY_NAME = {setting.name: setting for setting in SETTINGS}
BY_KEY = {setting.key: setting for setting in SETTINGS if setting.in_file}
