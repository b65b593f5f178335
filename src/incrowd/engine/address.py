"""PostgreSQL addresses, and how they are shown: without passwords.

An address is ``postgresql://user:password@host:port/database?key=value#schema.table``. What
stands in it is percent-encoded, but people write passwords as they are, and then nobody can
tell where they end. Here a password is taken to be as long as it can be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = {"password", "sslpassword"}
HIDDEN = "***"


@dataclass(frozen=True)
class Address:
    """An address taken apart. ``shown`` has no secrets; ``secrets`` are the texts to hide.

    ``doubtful`` if a password holds characters that end it before its end: the driver would
    take its parts for a host, a port or a database, and name them in its messages.
    """

    uri: str
    table: str
    shown: str
    secrets: tuple[str, ...]
    doubtful: bool

    def scrubbed(self, message: str) -> str:
        """A message without the secrets, which a driver may repeat."""
        if self.secrets and re.search(r"\bURI\b|percent-encoded|connection option", message):
            return (
                "the address is not well-formed. Percent-encode what is special in the password, "
                "or keep it in ~/.pgpass"
            )
        for secret in sorted(self.secrets, key=len, reverse=True):
            # A short one would be found in the middle of words, and told by that.
            sought = secret if len(secret) > 3 else f'"{secret}"'
            message = message.replace(sought, HIDDEN)
        return message


def is_address(source: object) -> bool:
    """Whether a source is the address of a table in PostgreSQL."""
    return isinstance(source, str) and source.startswith(_SCHEMES)


def without_secrets(source: str) -> str:
    """A source as it may be shown: an address without its password, anything else as it is."""
    if is_address(source):
        return take_apart(source).shown
    source = re.sub(r"(?<=://)[^:/@]*:.*@", f"{HIDDEN}@", source, flags=re.DOTALL)
    return re.sub(r"(?i)((?:ssl)?password\s*=\s*)('[^']*'|[^\s&]+)", rf"\1{HIDDEN}", source)


def take_apart(address: str) -> Address:
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
    known = [pair.partition("=") for pair in query.split("&")] if mark else []
    hidden = [value for key, _, value in known if unquote(key).lower() in _SECRET]
    kept = [
        f"{key}{sign}{value}" for key, sign, value in known if unquote(key).lower() not in _SECRET
    ]
    secrets = [password, *hidden] if colon else hidden
    shown = f"{scheme}://{user}{at}{place}" + ("?" + "&".join(kept) if kept else "")
    odd = re.search(r"[/@?#]", password) is not None or place == HIDDEN
    doubtful = odd or any("#" in secret for secret in hidden)
    return Address(
        uri=uri,
        table=table,
        shown=shown + ("#" + name if "#" in rest else ""),
        secrets=tuple(dict.fromkeys(x for text in secrets if text for x in (text, unquote(text)))),
        doubtful=doubtful,
    )


def _ends_in_secret(head: str) -> bool:
    key = re.split(r"[?&]", head)[-1].partition("=")[0]
    return "?" in head and unquote(key).lower() in _SECRET


def _has_odd_port(front: str) -> bool:
    """Whether something other than a number follows the colon of the host: it is no host."""
    hosts = re.sub(r"\[[^\]]*\]", "", front.partition("/")[0]).split(",")
    return any(not re.fullmatch(r"[^:]*(:[0-9]*)?", host) for host in hosts)
