"""A report as one HTML page that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from openjev_core.evaluating.measures import MEASURES
from openjev_core.evaluating.plots import reliability_plot, risk_coverage_plot

TITLES = {measure.name: measure.title for measure in MEASURES}


def page(template: str, report: Mapping[str, Any]) -> str:
    """The page's HTML. Text from the data is escaped.

    Args:
        template: ``evaluation``, ``comparison`` or ``calibration``.
        report: The report.
    """
    environment = Environment(
        loader=PackageLoader("openjev_core.evaluating", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["interval"] = interval
    environment.globals["titles"] = TITLES
    # matplotlib wrote these; no text from the data is in them.
    environment.globals["reliability"] = lambda series: Markup(reliability_plot(series))  # noqa: S704
    environment.globals["risk_coverage"] = lambda points: Markup(risk_coverage_plot(points))  # noqa: S704
    return environment.get_template(f"{template}.html").render(report=report)


def number(value: float | None) -> str:
    """A number for people; a dash where there is none."""
    return "–" if value is None else f"{value:.3f}"


def interval(estimate: Mapping[str, float | None]) -> str:
    """A value and its interval: ``0.812 [0.760, 0.861]``."""
    if estimate["low"] is None:
        return number(estimate["value"])
    return f"{number(estimate['value'])} [{number(estimate['low'])}, {number(estimate['high'])}]"
