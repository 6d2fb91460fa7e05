"""How much there is of the project, counted: lines, files, packages, and the functions that a request passes.

    uv run python tests/bench/size.py

`functions` are those of openjev that are given a request's state, or a body or object that holds it, between the ASGI
application and the backend, while one question about one small state is answered.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import orjson
from packaging.requirements import Requirement

from openjev_core.api.app import create_app
from openjev_core.plugins.registry import load_registry
from openjev_core.testing import scripted_engine

ROOT = Path(__file__).parents[2]
STATE = "a state that nothing else holds"


def lines_of(path):
    return len(path.read_text("utf-8").splitlines())


def packages_of(name, seen):
    """What installing a distribution brings, without extras."""
    for text in requires(name) or ():
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name.lower() not in seen:
            seen.add(requirement.name.lower())
            try:
                packages_of(requirement.name, seen)
            except PackageNotFoundError:
                continue
    return seen


def holds(value, depth=3):
    """Whether a value is the state, or holds it."""
    if isinstance(value, str):
        return STATE in value
    if isinstance(value, (bytes, bytearray)):
        return STATE.encode() in value
    if depth and isinstance(value, dict):
        return any(holds(child, depth - 1) for child in value.values())
    if depth and isinstance(value, (list, tuple)):
        return any(holds(child, depth - 1) for child in value)
    return depth and isinstance(getattr(value, "state", None), str) and holds(value.state, depth - 1)


def functions_passed():
    """The functions of openjev that one request's state is given to."""
    passed = set()

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT / "openjev_core")):
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if any(holds(frame.f_locals.get(name)) for name in names):
                passed.add((Path(code.co_filename).relative_to(ROOT), code.co_qualname))

    asyncio.run(answered(watch))
    return passed


async def answered(watch):
    """Answer one request, watched."""
    app = create_app(scripted_engine(*load_registry().types.values()))
    question = {"type": "noul", "instructions": "Is it?"}
    body = orjson.dumps({"model": "jev-latest", "state": STATE, "questions": {"q": question}})
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent = []
    gone = asyncio.Event()

    async def receive():
        if waiting:
            return waiting.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    path = "/v1/systemone"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
    }
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        await app(scope, receive, send)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert 200 == sent[0]["status"], sent


def main():
    for name in ("openjev_core", "plugins", "tests"):
        files = sorted((ROOT / name).rglob("*.py"))
        print(f"{name}: {sum(map(lines_of, files)):,} lines in {len(files)} files")
    large = [path for path in (ROOT / "openjev_core").rglob("*.py") if lines_of(path) > 250]
    print(f"modules over 250 lines: {len(large)}")
    print(f"packages that a server on SGLang installs: {len(packages_of('openjev', set()))}")
    passed = functions_passed()
    print(f"functions that a state passes: {len(passed)}")
    for file, function in sorted(passed):
        print(f"  {file}: {function}")


if __name__ == "__main__":
    main()
