"""PostgreSQL addresses, and how they are shown: without passwords.

An address is ``postgresql://user:password@host:port/database?key=value#schema.table``. What
stands in it is percent-encoded, but people write passwords as they are, and then nobody can
tell where they end. Here a password is taken to be as long as it can be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = {"password", "sslpassword"}
HIDDEN = "***"
_ENVIRONMENT = {  # what the driver takes where an address says nothing
    "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "user": "PGUSER",
    "dbname": "PGDATABASE", "service": "PGSERVICE",
}  # fmt: skip


@dataclass(frozen=True)
class PostgresAddress:
    """An address taken apart. ``shown`` has no secrets; ``secrets`` are the texts to hide.

    ``doubtful`` if a password holds characters that end it before its end: the driver would
    take its parts for a host, a port or a database, and name them in its messages.
    """

    uri: str
    table: str
    shown: str
    secrets: tuple[str, ...]
    doubtful: bool

    def scrub_message(self, message: str) -> str:
        """Return a message without the secrets, which a driver may repeat."""
        if self.secrets and re.search(r"\bURI\b|percent-encoded|connection option", message):
            return (
                "the address is not well-formed. Percent-encode what is special in the password, "
                "or keep it in ~/.pgpass"
            )
        for secret in sorted(self.secrets, key=len, reverse=True):
            # A short one would be found in the middle of words, and told by that.
            target = secret if len(secret) > 3 else f'"{secret}"'
            message = message.replace(target, HIDDEN)
        return message


@dataclass(frozen=True)
class ConnectionTarget:
    """What an address leads to, as the driver understands it; no secrets.

    ``settings`` are the other settings of the connection, which may name files or services.
    """

    server: str
    user: str
    database: str
    table: str
    settings: tuple[tuple[str, str], ...]
    has_password: bool


def is_address(source: object) -> bool:
    """Return whether a source is the address of a table in PostgreSQL."""
    return isinstance(source, str) and source.startswith(_SCHEMES)


def hide_secrets(source: str) -> str:
    """Return a source to show: an address without its password, anything else as it is."""
    if is_address(source):
        return parse_address(source).shown
    source = re.sub(r"(?<=://)[^:/@]*:.*@", f"{HIDDEN}@", source, flags=re.DOTALL)
    return re.sub(r"(?i)((?:ssl)?password\s*=\s*)('[^']*'|[^\s&]+)", rf"\1{HIDDEN}", source)


def find_target(address: str, environment: Mapping[str, str]) -> ConnectionTarget:
    """Find out whom the driver would contact for an address, without contacting anybody.

    What an address leaves out the driver takes from the environment; what stands in its query
    overrides what stands before it.
    """
    connection_target = parse_address(address)
    target = _parse_uri(connection_target.uri)
    for key, name in _ENVIRONMENT.items():
        if not target.get(key, "").strip(",") and environment.get(name):
            target[key] = f"{environment[name]} (from {name})"
    target = {key: value for key, value in target.items() if value.strip(",")}
    secret = [target.pop(key) for key in list(target) if key.lower() in _SECRET]
    return ConnectionTarget(
        server=_describe_server(target), user=target.pop("user", "the one you are logged in as"),
        database=target.pop("dbname", "the one named like the user"), table=connection_target.table,
        settings=tuple(
            (key, value) for key, value in target.items() if key not in ("host", "hostaddr", "port")
        ),
        has_password=bool(secret),
    )  # fmt: skip


def _parse_uri(uri: str) -> dict[str, str]:
    """Parse a URI step by step as the driver does, whatever it looks like to a person."""
    rest = uri.partition("://")[2]
    owner = re.match(r"([^@/]*)@", rest)  # a slash ends the search for a user, a '?' does not
    rest = rest[owner.end() :] if owner else rest
    user, _, password = (owner[1] if owner else "").partition(":")
    hosts, ports = [], []
    while match := re.match(r"(?:\[([^\]]*)\]|([^:/?,]*))(?::([^/?,]*))?(,?)", rest):
        hosts.append(unquote(match[1] or match[2] or ""))
        ports.append(match[3] or "")
        rest = rest[match.end() :]
        if not match[4]:
            break
    path, _, query = rest.partition("?")
    parameters = {
        "host": ",".join(hosts), "port": ",".join(ports), "user": unquote(user),
        "password": unquote(password), "dbname": unquote(path[1:]),
    }  # fmt: skip
    for pair in query.split("&") if query else ():
        key, _, value = pair.partition("=")
        parameters[unquote(key)] = unquote(value)
    return parameters


def _describe_server(target: Mapping[str, str]) -> str:
    """Describe where the driver connects to; the numeric address decides where there is one."""
    host, number = target.get("host", ""), target.get("hostaddr", "")
    name = f"{number} (called {host})" if host and number else number or host
    if not name:
        name = "the one of the service" if "service" in target else "this machine"
    return f"{name}, port {target['port']}" if target.get("port") else name


def parse_address(address: str) -> PostgresAddress:
    """Find what is secret in an address."""
    scheme, _, rest = address.partition("://")
    uri, _, table = address.partition("#")
    head, _, name = rest.partition("#")
    early = "#" in name and not name.startswith('"')  # perhaps it stands in a password
    if early and ("@" in name.rpartition("#")[0] or _ends_in_secret(head)):
        head, _, name = rest.rpartition("#")
    front, mark, query = head.partition("?")
    if "@" in query and "@" not in front and _has_odd_port(front):
        cut = head.rfind("@") + 1  # the question mark stands in the password
        tail, mark, query = head[cut:].partition("?")
        front = head[:cut] + tail
    owner, at, place = front.rpartition("@")
    user, colon, password = owner.partition(":")
    if not at and _has_odd_port(place):  # no host: a password without what follows it
        colon, password, place = ":", place.partition(":")[2], HIDDEN
    pairs = [pair.partition("=") for pair in query.split("&")] if mark else []
    hidden = [value for key, _, value in pairs if unquote(key).lower() in _SECRET]
    visible_pairs = [
        f"{key}{sign}{value}" for key, sign, value in pairs if unquote(key).lower() not in _SECRET
    ]
    secrets = [password, *hidden] if colon else hidden
    visible = f"{scheme}://{user}{at}{place}" + (
        "?" + "&".join(visible_pairs) if visible_pairs else ""
    )
    odd = re.search(r"[/@?#]", password) is not None or place == HIDDEN
    doubtful = odd or any("#" in secret for secret in hidden)
    return PostgresAddress(
        uri=uri,
        table=table,
        shown=visible + ("#" + name if "#" in rest else ""),
        secrets=tuple(dict.fromkeys(x for text in secrets if text for x in (text, unquote(text)))),
        doubtful=doubtful,
    )


def _ends_in_secret(head: str) -> bool:
    key = re.split(r"[?&]", head)[-1].partition("=")[0]
    return "?" in head and unquote(key).lower() in _SECRET


def _has_odd_port(front: str) -> bool:
    """Return whether something other than a number follows the host's colon: it is no host."""
    hosts = re.sub(r"\[[^\]]*\]", "", front.partition("/")[0]).split(",")
    return any(not re.fullmatch(r"[^:]*(:[0-9]*)?", host) for host in hosts)
