"""A report as one HTML page that loads nothing from anywhere, with its plots as SVG."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from openjev_core.datasets.measures import MEASURES

Bins = Sequence[Mapping[str, Any]]

TITLES = {measure.name: measure.title for measure in MEASURES}

AXES = "0.5"
"""Grey that can be seen on white and on black."""


def page(template: str, report: Mapping[str, Any]) -> str:
    """The page's HTML. Text from the data is escaped.

    Args:
        template: ``evaluation``, ``comparison`` or ``calibration``.
        report: The report.
    """
    environment = Environment(
        loader=PackageLoader("openjev_core.datasets", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["interval"] = interval
    environment.filters["percent"] = lambda share: f"{100 * share:.4g}%"
    environment.globals["titles"] = TITLES
    script = environment.get_template("sort.js").render()
    # The page's policy lets this script run and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals["script"] = Markup(script)  # noqa: S704 - a file of this package
    environment.globals["script_hash"] = f"sha256-{digest}"
    # matplotlib wrote these; no text from the data is in them.
    environment.globals["reliability"] = lambda series: Markup(reliability_plot(series))  # noqa: S704
    environment.globals["risk_coverage"] = lambda points: Markup(risk_coverage_plot(points))  # noqa: S704
    return environment.get_template(f"{template}.html").render(report=report)


def number(value: float | None) -> str:
    """A number for people; a dash where there is none."""
    return "–" if value is None else f"{value:.3f}"


def interval(estimate: Mapping[str, Any]) -> str:
    """A value and its interval: ``0.812 [0.760, 0.861]``."""
    if estimate["low"] is None:
        return number(estimate["value"])
    return f"{number(estimate['value'])} [{number(estimate['low'])}, {number(estimate['high'])}]"


def reliability_plot(series: Mapping[str, Bins]) -> str:
    """A reliability diagram: confidence against accuracy with its interval, one line per name."""
    figure, axes = _figure("mean probability", "share that is right")
    axes.plot([0, 1], [0, 1], color=AXES, linewidth=1, linestyle="--")
    for name, bins in series.items():
        confidence = [one["confidence"] for one in bins]
        accuracy = [one["accuracy"]["value"] for one in bins]
        (line,) = axes.plot(confidence, accuracy, marker="o", markersize=4, linewidth=1.2, label=name)
        for one in bins:
            if one["accuracy"]["low"] is not None:
                ends = [one["accuracy"]["low"], one["accuracy"]["high"]]
                axes.plot([one["confidence"]] * 2, ends, color=line.get_color(), linewidth=1, alpha=0.6)
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8)
    return _svg(figure)


def risk_coverage_plot(points: Sequence[Mapping[str, float]]) -> str:
    """Error rate against the share of answers that are kept."""
    figure, axes = _figure("coverage: share of answers kept", "risk: error rate of those")
    axes.step([p["coverage"] for p in points], [p["risk"] for p in points], where="post", linewidth=1.2)
    return _svg(figure)


def _figure(x: str, y: str) -> tuple[Figure, Axes]:
    # Figure itself, not pyplot: that keeps every figure it ever made, and asks for a display.
    figure = Figure(figsize=(3.6, 3.2), layout="constrained", facecolor="none")
    axes = figure.add_subplot(facecolor="none")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=7, color=AXES)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(AXES)
    return figure, axes


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    with mpl.rc_context(
        {"svg.fonttype": "none"}
    ):  # text stays text, which can be read aloud and takes the page's colour
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    # Inside HTML, an XML declaration and a doctype that names a remote DTD have no place.
    return text[text.index("<svg") :]
