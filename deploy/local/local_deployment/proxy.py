"""Apache's own configuration for the proxy: what Debian's /etc/apache2 has on a team's machine."""

from __future__ import annotations

import os
import shutil

from local_deployment.layout import BROWSE_HOST, CHECKOUT, Layout

MODULES = (
    "mpm_event",
    "authn_core",
    "authz_core",
    "authz_user",
    "auth_openidc",
    "headers",
    "rewrite",
    "proxy",
    "proxy_http",
    "proxy_wstunnel",
    "filter",
    "substitute",
)
FOLDER = "/usr/lib/apache2/modules"
USER = "www-data"
"""Apache's, where it is started as root."""
CLIENT_ID, READERS, OPERATORS = "marin", "marin-readers", "marin-operators"


def apache_conf(layout: Layout) -> str:
    modules = "\n".join(f"LoadModule {name}_module {FOLDER}/mod_{name}.so" for name in MODULES)
    defined = {
        "MARIN_URL": layout.url,
        "MARIN_BROWSE_URL": layout.browse_url,
        "MARIN_PROVIDER": layout.provider_url,
        "MARIN_CLIENT_ID": CLIENT_ID,
        "MARIN_READERS": READERS,
        "MARIN_OPERATORS": OPERATORS,
        "MARIN_WEBSERVER": f"127.0.0.1:{layout.ports['webserver']}",
        "MARIN_READ_ONLY": f"127.0.0.1:{layout.ports['read_only']}",
        "MARIN_BROWSER": f"127.0.0.1:{layout.ports['browse']}",
        "MARIN_SESSIONS": str(layout.sessions_folder),
    }
    defines = "\n".join(f"Define {name} {value}" for name, value in defined.items())
    user = f"User {USER}\nGroup {USER}\n" if os.geteuid() == 0 else ""
    return f"""\
{modules}
{defines}
{user}ServerRoot {layout.home}
ServerName 127.0.0.1
ServerTokens Prod
DefaultRuntimeDir {layout.home}/run
PidFile {layout.home}/run/apache.pid
ErrorLog {layout.home}/logs/proxy-errors.log
Listen 127.0.0.1:{layout.port}
Include {layout.secret_path("apache.conf")}
{_virtual_host(layout, "127.0.0.1", "marin.conf")}
{_virtual_host(layout, BROWSE_HOST, "browse.conf")}"""


def _virtual_host(layout: Layout, name: str, conf: str) -> str:
    return f"""\
<VirtualHost 127.0.0.1:{layout.port}>
    ServerName {name}
    Include {CHECKOUT}/deploy/proxy/login.conf
    Include {CHECKOUT}/deploy/proxy/{conf}
    CustomLog "|$exec sed -u -E -f {CHECKOUT}/deploy/proxy/log.sed >> {layout.home}/logs/proxy-access.log" marin
</VirtualHost>
"""


def make_sessions_folder(layout: Layout) -> None:
    """Make it, for Apache's user alone; keep an existing one."""
    layout.sessions_folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        shutil.chown(layout.sessions_folder, USER, USER)


def apache_secrets(layout: Layout) -> str:
    return f"""\
OIDCClientSecret {layout.secret("oidc_client")}
OIDCCryptoPassphrase {layout.secret("oidc_cookies")}
Define MARIN_BROWSE_PASSPHRASE {layout.secret("browse_cookies")}
"""
