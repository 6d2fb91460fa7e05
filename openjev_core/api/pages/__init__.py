"""Pages for people. They hold no data and need no key."""

from __future__ import annotations

from openjev_core.api.pages.routes import page_routes

__all__ = ["page_routes"]
