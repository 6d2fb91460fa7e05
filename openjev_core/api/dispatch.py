"""From a request to its reply: route, method, key, handler; and every error to JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable

from attrs import frozen

from openjev_core.api.error_reply import error_reply
from openjev_core.api.exchange import Exchange, Receive, Reply, Scope, Send
from openjev_core.api.incoming import ClientGone, Incoming
from openjev_core.api.keys import Keys
from openjev_core.errors import MethodNotAllowed, NotFound

NOT_MODIFIED = 304

Handler = Callable[[Exchange, Incoming], Awaitable[Reply]]


@frozen
class Route:
    """What answers one method of one path.

    Attributes:
        method: ``GET`` answers ``HEAD`` as well.
        path: Compared exactly.
        handler: Gives the reply, or raises one of openjev's errors.
        keyed: Whether a key is needed where one is configured.
    """

    method: str
    path: str
    handler: Handler
    keyed: bool = True


def always(reply: Reply) -> Handler:
    """A handler that gives everyone the same reply, made once."""

    async def handle(_exchange: Exchange, _incoming: Incoming) -> Reply:
        return reply

    return handle


class Dispatch:
    """The innermost ASGI application: one reply per request, whatever happens."""

    def __init__(self, routes: Iterable[Route], keys: Keys) -> None:
        self._keys = keys
        self._routes: dict[str, dict[str, Route]] = defaultdict(dict)
        for route in routes:
            self._routes[route.path][route.method] = route
            if route.method == "GET":
                self._routes[route.path]["HEAD"] = route
        self._routes = dict(self._routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ``http`` scope that holds its :class:`Exchange` under ``openjev.exchange``."""
        exchange: Exchange = scope["openjev.exchange"]
        incoming = Incoming(receive)
        try:
            route = self._route(scope, exchange)
            if route.keyed:
                self._keys.check(exchange.headers.get(b"authorization"))
            reply = await route.handler(exchange, incoming)
        except ClientGone:
            exchange.hung_up = True
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets JSON and the log gets the error
            exchange.error = error
            reply = error_reply(error, exchange.request_id)
        # A 304 has no body, and must not announce the length of one.
        length = [] if reply.status == NOT_MODIFIED else [(b"content-length", b"%d" % len(reply.body))]
        headers = [*length, *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if incoming.ended:
            await send({"type": "http.response.body", "body": reply.body})
        else:
            await send({"type": "http.response.body", "body": reply.body, "more_body": True})
            await incoming.drain()
            await send({"type": "http.response.body", "body": b""})

    def _route(self, scope: Scope, exchange: Exchange) -> Route:
        methods = self._routes.get(scope["path"])
        if methods is None:
            raise NotFound(f"there is no route {scope['path'][:200]!r}; GET / lists them")
        exchange.route = scope["path"]
        route = methods.get(scope["method"])
        if route is None:
            allowed = ", ".join(methods)
            raise MethodNotAllowed(
                f"{scope['path']} does not take {scope['method'][:40]!r}, only {allowed}", [*methods]
            )
        return route
