"""What answers at one path: method, key, handler; and every error to JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping

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


@frozen
class Endpoint:
    """The ASGI application of one path: one reply per request, whatever happens.

    Attributes:
        keys: Asked where a route is keyed.
        routes: Method to what answers it; empty where there is no such path.
    """

    keys: Keys
    routes: Mapping[str, Route]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ``http`` scope that holds its :class:`Exchange` under ``openjev.exchange``."""
        exchange: Exchange = scope["openjev.exchange"]
        incoming = Incoming(receive)
        try:
            route = self._route(exchange)
            if route.keyed:
                self.keys.check(exchange.headers.get(b"authorization"))
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

    def _route(self, exchange: Exchange) -> Route:
        if not self.routes:
            raise NotFound(f"there is no route {exchange.path[:200]!r}; GET / lists them")
        exchange.route = exchange.path
        route = self.routes.get(exchange.method)
        if route is None:
            allowed = ", ".join(self.routes)
            raise MethodNotAllowed(
                f"{exchange.path} does not take {exchange.method[:40]!r}, only {allowed}", [*self.routes]
            )
        return route


def endpoints(routes: Iterable[Route], keys: Keys) -> dict[str, Endpoint]:
    """Path to what answers there."""
    by_path: defaultdict[str, dict[str, Route]] = defaultdict(dict)
    for route in routes:
        by_path[route.path][route.method] = route
        if route.method == "GET":
            by_path[route.path]["HEAD"] = route
    return {path: Endpoint(keys, methods) for path, methods in by_path.items()}
