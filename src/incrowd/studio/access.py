"""Who may ask the studio anything: only the browser that opened its link, on this machine.

Claim: a request is answered only if it carries a cookie that was given in exchange for a link of
this studio, names the studio's own host, and, where it changes anything, comes from one of the
studio's own pages. So

- who can connect to the port but has not seen the link gets nothing (no cookie);
- a link works once: it is worthless in a history, a log or over a shoulder;
- whoever uses a link first gains nothing by it: when it is used a second time, the browser that it
  let in is shut out, and the terminal says so;
- a page of another site that makes the browser ask the studio gets nothing: the cookie is
  ``SameSite=Strict``, and the ``Origin`` of what changes anything must be the studio's;
- a name that an attacker rebinds to this machine gets nothing: the ``Host`` must be the studio's.

Pages may load nothing from elsewhere, run no script but the studio's own files, be shown in no
frame of another, and are kept in no cache.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incrowd.errors import IncrowdError

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
BODY_SECONDS = 60  # that the next part of a body may take


class Sessions:
    """The links that let a browser in, each once, and the browsers that came in by them.

    Args:
        report: Called with the next token when one was used, and whether it was used twice.

    """

    def __init__(self, report: Callable[[str, bool], None] = lambda _token, _twice: None) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._token = secrets.token_urlsafe(32)
        self._inside: dict[str, str] = {}  # secrets of browsers, and the tokens they came in by

    @property
    def token(self) -> str:
        """What lets the next browser in, once."""
        return self._token

    def admit_browser(self, token: str) -> str | None:
        """Return the secret of a new browser in exchange for a token; None if it is not valid.

        A token that was used before shuts out the browser that used it: one of the two is not
        the user's, and nobody can tell which.
        """
        with self._lock:
            new = secrets.compare_digest(token.encode(), self._token.encode())
            by_it = [
                secret for secret, used in self._inside.items()
                if secrets.compare_digest(token.encode(), used.encode())
            ]  # fmt: skip
            for secret in by_it:
                del self._inside[secret]
            if not new and not by_it:
                return None
            if new:
                secret = secrets.token_urlsafe(32)
                self._inside[secret] = token
                self._token = secrets.token_urlsafe(32)
        self._report(self._token, bool(by_it))
        return secret if new else None

    def is_known(self, secret: str) -> bool:
        """Return whether a browser came in by a link."""
        is_match = False
        for session in list(self._inside):  # all of them, whichever it is
            is_match |= secrets.compare_digest(session.encode(), secret.encode())
        return is_match


class RequestGuard:
    """Lets through what may be asked, and puts headers on every answer."""

    def __init__(self, app: ASGIApp, sessions: Sessions, hosts: Sequence[str]) -> None:
        self._app, self._sessions, self._hosts = app, sessions, frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in hosts)
        # A browser has one set of cookies for all ports: each studio has a name of its own.
        self._cookie = f"incrowd-studio-{hosts[0].rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refused = self._refuse_request(scope)
        answer = self._app if refused is None else refused
        await answer(scope, limit_body_wait(receive), _add_headers(send))

    def _refuse_request(self, scope: Scope) -> Response | None:
        request, headers = Request(scope), Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            return _make_refusal(403, "Use the address that the terminal shows.")
        origins = headers.getlist("origin")
        is_same_origin = len(origins) == 1 and origins[0] in self._origins
        if origins and not is_same_origin:
            return _make_refusal(403, "This request comes from another site.")
        if request.method not in _READS and not is_same_origin:
            return _make_refusal(403, "This request does not come from a page of this studio.")
        token = request.query_params.get("token")
        if token is not None and request.method == "GET":
            return self._admit_browser(request, token)
        secret = request.cookies.get(self._cookie, "")
        if not self._sessions.is_known(secret):
            return _make_refusal(403, "Open the link that the terminal shows. It works once.")
        scope["secret"] = secret
        return None

    def _admit_browser(self, request: Request, token: str) -> Response:
        """Let a browser in, unless it is in, and take the token out of its address."""
        inside = self._sessions.is_known(request.cookies.get(self._cookie, ""))
        secret = None if inside else self._sessions.admit_browser(token)
        if secret is None and not inside:
            return _make_refusal(
                403,
                "This link was used, or is of another studio. Open the last link in the terminal.",
            )
        left = {
            name: values for name, values in parse_qs(request.url.query).items() if name != "token"
        }
        query = f"?{urlencode(left, doseq=True)}" if left else ""
        answer = RedirectResponse(f"{request.url.path}{query}", status_code=303)
        if secret is not None:
            answer.set_cookie(self._cookie, secret, httponly=True, samesite="strict", path="/")
        return answer


def limit_body_wait(receive: Receive) -> Receive:
    """Bound how long the next part of a body may take, so that nobody holds a request open."""
    complete = False

    async def receive_part() -> Message:
        nonlocal complete
        if complete:
            return await receive()  # whoever waits now waits for the end of the connection
        try:
            message = await asyncio.wait_for(receive(), BODY_SECONDS)
        except TimeoutError:
            raise IncrowdError(
                f"No data arrived for {BODY_SECONDS} seconds. Send it again."
            ) from None
        complete = not message.get("more_body", False)
        return message

    return receive_part


def _make_refusal(status: int, words: str) -> Response:
    return PlainTextResponse(f"{words}\n", status_code=status)


def _add_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
