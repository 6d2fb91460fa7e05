"""What a reader prepares for questions that tests write down as their type and value."""

from __future__ import annotations

from openjev_core.engine.plan import Planner
from openjev_core.engine.request import Question, Request, Requests
from openjev_core.plugins.registry import load_registry
from openjev_core.plugins.structuring import QuestionConverter


def planner_for(reader):
    """A planner over a reader."""
    requests = Requests(QuestionConverter(load_registry()), ("served",), 64)
    return Planner(reader, requests, reader.limits.max_answers_per_question)


def prepared(planner, state, questions, *, orders=1, partial=False):
    """What is prepared for a request.

    Args:
        planner: Or a reader.
        state: As sent.
        questions: Question id to a :class:`Question`, or to type and value.
        orders, partial: As in a request.
    """
    planner = planner if isinstance(planner, Planner) else planner_for(planner)
    asked = {key: q if isinstance(q, Question) else Question(*q) for key, q in questions.items()}
    request = Request(state=state, questions=asked, orders=orders, asks_for_orders=False, partial=partial, detail=False)
    return planner.prepare(request)


def branches_of(question):
    """Every branch of a prepared question, readout by readout, order by order."""
    return [variant.branch for readout in question.readouts for variant in readout.variants]
