"""Who may ask the studio anything: only the browser that opened its link, on this machine.

Claim: a request is answered only if it carries a cookie that was given in exchange for a link of
this studio, names the studio's own host, and, where it changes anything, comes from one of the
studio's own pages. So

- who can connect to the port but has not seen the link gets nothing (no cookie);
- a link works once: it is worthless in a history, a log or over a shoulder;
- a page of another site that makes the browser ask the studio gets nothing: the cookie is
  ``SameSite=Strict``, and the ``Origin`` of what changes anything must be the studio's;
- a name that an attacker rebinds to this machine gets nothing: the ``Host`` must be the studio's.

Pages may load nothing from elsewhere, run no script but the studio's own files, be shown in no
frame of another, and are kept in no cache.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # or forms would not say whose page they are on
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_READS = ("GET", "HEAD")


class Doors:
    """The links that let a browser in, each once, and the browsers that came in by them."""

    def __init__(self, said: Callable[[str], None] = lambda _link: None) -> None:
        self._said = said  # told of the next link when one was used
        self._lock = threading.Lock()
        self._token = secrets.token_urlsafe(32)
        self._inside: set[str] = set()

    @property
    def token(self) -> str:
        """What opens the door once, to whoever is next."""
        return self._token

    def enter(self, token: str) -> str | None:
        """The secret of a new browser in exchange for a token; None if it is not the one."""
        with self._lock:
            if not secrets.compare_digest(token.encode(), self._token.encode()):
                return None
            self._token = secrets.token_urlsafe(32)
            secret = secrets.token_urlsafe(32)
            self._inside.add(secret)
        self._said(self._token)
        return secret

    def knows(self, secret: str) -> bool:
        """Whether a browser came in by a link."""
        known = False
        for one in self._inside:  # all of them, whichever it is
            known |= secrets.compare_digest(one.encode(), secret.encode())
        return known


class Guard:
    """Lets through what may be asked, and puts headers on every answer."""

    def __init__(self, app: ASGIApp, doors: Doors, hosts: Sequence[str]) -> None:
        self._app, self._doors, self._hosts = app, doors, frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in hosts)
        # A browser has one set of cookies for all ports: each studio has a name of its own.
        self._cookie = f"incrowd-studio-{hosts[0].rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        answer = self._app if refused is None else refused
        await answer(scope, receive, _guarded(send))

    def _refused(self, scope: Scope) -> Response | None:
        request, headers = Request(scope), Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            return _no(403, "This studio answers to its own address alone.")
        origins = headers.getlist("origin")
        own = len(origins) == 1 and origins[0] in self._origins
        if origins and not own:
            return _no(403, "This request comes from another site.")
        if request.method not in _READS and not own:
            return _no(403, "This request does not come from a page of this studio.")
        token = request.query_params.get("token")
        if token is not None and request.method == "GET":
            return self._enter(request, token)
        secret = request.cookies.get(self._cookie, "")
        if not self._doors.knows(secret):
            return _no(
                403, "Open the link that the terminal shows: it lets a browser in, and works once."
            )
        scope["secret"] = secret
        return None

    def _enter(self, request: Request, token: str) -> Response:
        """Let a browser in, unless it is in, and take the token out of its address."""
        inside = self._doors.knows(request.cookies.get(self._cookie, ""))
        secret = None if inside else self._doors.enter(token)
        if secret is None and not inside:
            return _no(403, "This link was used, or is not of this studio. See the terminal.")
        left = {
            name: values for name, values in parse_qs(request.url.query).items() if name != "token"
        }
        query = f"?{urlencode(left, doseq=True)}" if left else ""
        answer = RedirectResponse(f"{request.url.path}{query}", status_code=303)
        if secret is not None:
            answer.set_cookie(self._cookie, secret, httponly=True, samesite="strict", path="/")
        return answer


def _no(status: int, words: str) -> Response:
    return PlainTextResponse(f"{words}\n", status_code=status)


def _guarded(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent
