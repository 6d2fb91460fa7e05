"""Other people's clients, unmodified, against a server: a base URL is all that they are given.

Run by a Python of its own, since they want other releases of what openjev wants: see ``test_foreign_clients.py``.
Prints a line of JSON for each client: its name, and the answers as noul's probability, choice, and score.
"""

import asyncio
import json
import os
import sys

import langchain_openai.decisions as of_openai
import langchain_typesafe as of_typesafe
import litellm
from haystack import Document
from haystack_integrations.components.classifiers.typesafe import TypeSafeDocumentClassifier
from openai import AsyncOpenAI, OpenAI
from typesafe_sdk import TypeSafeClient

URL = sys.argv[1]
os.environ.update(TYPESAFE_API_KEY="any", OPENAI_API_KEY="any")

TEXT = "I was charged twice for my March invoice."
CHOICES = {"billing": "Payments and refunds", "technical": "Bugs"}
LEVELS = ["calm", "annoyed", "furious"]
SYSTEMONE = {
    "refund": {"type": "noul", "instructions": "Is the customer asking for money back?"},
    "team": {"type": "choice", "instructions": "Which team?", "criteria": CHOICES},
    "anger": {"type": "score", "instructions": "How angry?", "criteria": LEVELS},
}
DECISIONS = [
    {"type": "predicate", "name": "refund", "instructions": "Is the customer asking for money back?"},
    {
        "type": "choice",
        "name": "team",
        "instructions": "Which team?",
        "choices": [{"value": value, "description": text} for value, text in CHOICES.items()],
    },
    {"type": "score", "name": "anger", "instructions": "How angry?", "levels": [{"label": label} for label in LEVELS]},
]


def told(name, probability, choice, score):
    print(json.dumps([name, probability, choice, score]), flush=True)


def from_systemone(name, response):
    answers = response.answers
    told(name, answers["refund"].noul, answers["team"].choice, answers["anger"].score)


def from_decisions(name, response):
    refund, team, anger = response.answers
    told(name, refund.probability, team.choice, anger.score)


def ask_openai():
    asked = {"model": "gpt-6-luna", "input": TEXT, "questions": DECISIONS}
    with OpenAI(base_url=URL + "/v1") as client:
        from_decisions("openai", client.decisions.create(**asked))

    async def run():
        async with AsyncOpenAI(base_url=URL + "/v1") as client:
            return await client.decisions.create(**asked)

    from_decisions("openai async", asyncio.run(run()))


def ask_litellm():
    response = litellm.decisions(model="openai/gpt-6-luna", api_base=URL + "/v1", input=TEXT, questions=DECISIONS)
    from_decisions("litellm decisions", response)
    response = litellm.systemone(model="typesafe/jev-latest", api_base=URL, state=TEXT, questions=SYSTEMONE)
    from_systemone("litellm systemone", response)


def ask_langchain_openai():
    questions = {
        "refund": of_openai.Predicate(instructions=DECISIONS[0]["instructions"]),
        "team": of_openai.Choice(instructions="Which team?", choices=CHOICES),
        "anger": of_openai.Score(instructions="How angry?", levels=LEVELS),
    }
    decisions = of_openai.OpenAIDecisions(model="gpt-6-luna", base_url=URL + "/v1")
    for name, response in (
        ("langchain-openai", decisions.invoke({"input": TEXT, "questions": questions})),
        ("langchain-openai async", asyncio.run(decisions.ainvoke({"input": TEXT, "questions": questions}))),
    ):
        answers = (response.predicates["refund"], response.choices["team"], response.scores["anger"])
        told(name, answers[0].probability, answers[1].choice, answers[2].score)


def ask_langchain_typesafe():
    classes = {"noul": of_typesafe.Noul, "choice": of_typesafe.Choice, "score": of_typesafe.Score}
    questions = {name: classes[question["type"]](**question) for name, question in SYSTEMONE.items()}
    classifier = of_typesafe.TypeSafeClassifier(base_url=URL)
    asked = {"state": TEXT, "questions": questions}
    from_systemone("langchain-typesafe", classifier.invoke(asked))
    from_systemone("langchain-typesafe async", asyncio.run(classifier.ainvoke(asked)))


def ask_haystack():
    classifier = TypeSafeDocumentClassifier(questions=SYSTEMONE, api_base_url=URL)
    result = classifier.run(documents=[Document(content=TEXT)])
    assert result["failed_documents"] == [], result["failed_documents"][0].meta
    meta = result["documents"][0].meta["typesafe"]
    told("typesafe-haystack", meta["refund"]["noul"], meta["team"]["choice"], meta["anger"]["score"])


def ask_typesafe_sdk():
    with TypeSafeClient(base_url=URL) as client:
        from_systemone("typesafe-sdk", client.system_one(state=TEXT, questions=SYSTEMONE))


for ask in (ask_openai, ask_litellm, ask_langchain_openai, ask_langchain_typesafe, ask_haystack, ask_typesafe_sdk):
    ask()
