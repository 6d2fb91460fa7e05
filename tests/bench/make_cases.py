"""Write desk.jsonl, messages to a shop's help desk whose labels are right by construction, and
lettered.jsonl, its yes/no questions asked as a choice between two lettered options in the same words;
more.jsonl goes on where desk.jsonl ends.

Facts are drawn first, and each is told by a sentence that states it, so every label follows from the text. Same seed,
same file.

trust.py writes them where it keeps its runs. By itself: `uv run python tests/bench/make_cases.py FOLDER`.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

ROWS = 70
MORE = 180
SEED = 20

OPENINGS = [
    "Hello,", "Good morning,", "Hi there,", "Dear team,", "To whom it may concern,", "Hey,",
    "Hello, a customer of three years here.", "Hi, I found this address on your site.",
]  # fmt: skip

TEAM = {
    "billing": [
        "My card was charged twice for the same {product}.",
        "The invoice for the {product} shows a higher amount than the one I agreed to.",
        "Your bill lists a discount for the {product} that was never taken off.",
        "I need a receipt with my company's tax number for the {product}.",
        "The monthly payment for the {product} went out three days early.",
    ],
    "technical": [
        "The {product} switches itself off after about a minute.",
        "Since the last update the {product} shows an error and will not start.",
        "The {product} loses its connection whenever I use it.",
        "A light on the {product} blinks red and the manual does not say why.",
        "The {product} makes a grinding noise and then stops.",
    ],
    "delivery": [
        "The parcel with the {product} has been at the same depot for eight days.",
        "The courier left the {product} at a house across town.",
        "Tracking says that the {product} arrived, and nothing is here.",
        "The box of the {product} came soaked and torn open.",
        "I moved last week, and the {product} is on its way to my old address.",
    ],
    "account": [
        "I cannot sign in to look at the order of my {product}, the site says my password is wrong.",
        "Please change the e-mail address under which I bought the {product}.",
        "The link to reset my password, which I need to register the {product}, never comes.",
        "I would like my profile, and all you know of me from buying the {product}, deleted.",
        "My account was locked when I tried to register the {product}.",
    ],
}
PRODUCT = ["coffee machine", "desk lamp", "rain jacket", "bicycle pump", "wireless headset"]
REFUND = {
    True: [
        "I want my money back.",
        "Please return what I paid to my card.",
        "I am sending this back and expect a full refund.",
        "Kindly transfer the whole price back to me.",
    ],
    False: [
        "I do not want my money back, I just want this put right.",
        "Keep the payment, only please sort this out.",
        "A refund is not what I am after.",
        "I am glad to have bought it and want to keep it.",
    ],
}
CHANNEL = {
    "phone": ["Please call me on my mobile.", "Ring me, I do not read my mail often.", "I would rather talk: call me."],
    "writing": [
        "Please answer by e-mail, I cannot take calls.",
        "Write back to this address, please do not call.",
        "A written answer is what I need.",
    ],
}
URGENCY = [
    ["There is no hurry at all.", "Whenever you get round to it is fine.", "Take the time that you need."],
    ["Some time this week would be good.", "I hope to hear from you within the week."],
    ["I need this settled by tomorrow.", "Tomorrow is the latest that helps me."],
    [
        "This is an emergency, I need someone within the hour.",
        "Drop everything, please: it has to be solved right now.",
    ],
]

QUESTIONS = {
    "team": {
        "type": "choice",
        "instructions": "Which team should this message go to?",
        "criteria": {
            "billing": "Payments, invoices and receipts",
            "technical": "Products that do not work as they should",
            "delivery": "Parcels that are late, lost or damaged on the way",
            "account": "Signing in, profiles and personal data",
        },
    },
    "product": {
        "type": "choice",
        "instructions": "Which product is the message about?",
        "criteria": dict.fromkeys(PRODUCT),
    },
    "channel": {
        "type": "choice",
        "instructions": "How does the writer want to be answered?",
        "criteria": {"phone": "By a phone call", "writing": "In writing"},
    },
    "refund": {"type": "noul", "instructions": "Does the writer ask for money back?"},
    "call": {"type": "noul", "instructions": "The writer wants to be called by phone."},
    "defect": {"type": "noul", "instructions": "Is a product not working as it should?"},
    "parcel": {"type": "noul", "instructions": "Did something go wrong on the way of a parcel?"},
    "urgency": {
        "type": "score",
        "instructions": "How soon does the writer need an answer?",
        "criteria": ["At any time", "Within the week", "By tomorrow", "At once"],
    },
}


def cases() -> list[dict[str, Any]]:
    """Every row."""
    chance = random.Random(SEED)
    rows = []
    for number in range(1, MORE + 1):
        team, product = chance.choice(list(TEAM)), chance.choice(PRODUCT)
        channel, refund, urgency = chance.choice(list(CHANNEL)), chance.random() < 0.5, chance.randrange(4)
        told = [
            chance.choice(TEAM[team]).format(product=product),
            chance.choice(REFUND[refund]),
            chance.choice(CHANNEL[channel]),
            chance.choice(URGENCY[urgency]),
        ]
        first, rest = told[0], told[1:]
        chance.shuffle(rest)
        # Options in an order of their own in each row, as they come from many clients.
        questions = {
            name: {**question, "criteria": shuffled(question["criteria"], chance)}
            if question["type"] == "choice"
            else question
            for name, question in QUESTIONS.items()
        }
        rows.append(
            {
                "id": f"desk-{number:03}",
                "state": " ".join([chance.choice(OPENINGS), first, *rest]),
                "questions": questions,
                "labels": {
                    "team": team,
                    "product": product,
                    "channel": channel,
                    "refund": refund,
                    "call": channel == "phone",
                    "defect": team == "technical",
                    "parcel": team == "delivery",
                    "urgency": urgency,
                },
            }
        )
    return rows


def shuffled(criteria: dict[str, str | None], chance: random.Random) -> dict[str, str | None]:
    """The same options in another order."""
    return dict(chance.sample(list(criteria.items()), len(criteria)))


def lettered(row: dict[str, Any]) -> dict[str, Any]:
    """A row's yes/no questions as choices. The options say what Noul's say, under letters instead of Yes and No."""
    nouls = {name: question for name, question in row["questions"].items() if question["type"] == "noul"}
    return {
        "id": row["id"],
        "state": row["state"],
        "questions": {
            name: {
                "type": "choice",
                "instructions": question["instructions"],
                "criteria": {"yes": "the answer is yes", "no": "the answer is no"},
            }
            for name, question in nouls.items()
        },
        "labels": {name: "yes" if row["labels"][name] else "no" for name in nouls},
    }


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """One row per line."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_cases(folder: Path) -> None:
    """Write every file of cases."""
    folder.mkdir(parents=True, exist_ok=True)
    more = cases()
    desk = more[:ROWS]
    write(folder / "more.jsonl", more)
    write(folder / "desk.jsonl", desk)
    write(folder / "lettered.jsonl", [lettered(row) for row in desk])


if __name__ == "__main__":
    write_cases(Path(sys.argv[1]))
