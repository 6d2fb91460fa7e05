// Requests to start from, in the wire's JSON.

const TICKET = {
  title: "A support ticket",
  about:
    "Text, and a question of each built-in type: does the customer want a refund, whose ticket is it, how upset are they?",
  request: `{
  "model": "jev-latest",
  "state": "Hi, I was charged twice for my March invoice, and the refund that I was promised last week still has not arrived. This is the third time I write about it. Please fix it today.",
  "questions": {
    "wants_refund": {"type": "noul", "instructions": "Is the customer asking for money back?"},
    "team": {
      "type": "choice",
      "instructions": "Which team should handle this ticket?",
      "criteria": {
        "billing": "Payments, invoices, refunds",
        "technical": "Bugs, outages, integrations",
        "sales": "Plans, quotes, new contracts"
      }
    },
    "frustration": {
      "type": "score",
      "instructions": "How frustrated is the customer?",
      "criteria": ["Calm and friendly", "Slightly annoyed", "Clearly frustrated", "Furious"]
    }
  }
}`,
};

const CHAT = {
  title: "A conversation",
  about: "A chat with roles: did the assistant keep to its instructions, and what should happen next?",
  request: `{
  "model": "jev-latest",
  "state": [
    {"role": "system", "content": "You help customers of a bicycle shop. Never promise a delivery date."},
    {"role": "user", "content": "When will my new wheel arrive?"},
    {"role": "assistant", "content": "It will be with you on Friday, I promise!"},
    {"role": "user", "content": "Great. And if it does not fit?"}
  ],
  "questions": {
    "broke_rule": {
      "type": "noul",
      "instructions": "Did the assistant break a rule that it was given?",
      "criteria": {"true": "It did something that its instructions forbid", "false": "It kept to its instructions"}
    },
    "next_step": {
      "type": "choice",
      "instructions": "What should happen next?",
      "criteria": {
        "answer": "The assistant answers by itself",
        "human": "A person takes over",
        "close": "The conversation is over"
      }
    }
  }
}`,
};

const RECORD = {
  title: "A record",
  about: "JSON as it comes from another system: is this order suspicious, and how urgent is a look at it?",
  request: `{
  "model": "jev-latest",
  "state": {
    "order": 20931,
    "total": 1849.00,
    "currency": "EUR",
    "customer": {"since": "2026-11-02", "orders": 1, "email_confirmed": false},
    "items": [{"name": "Camera lens", "quantity": 3}],
    "ship_to": "Freight forwarder, Rotterdam",
    "billing_country": "CA"
  },
  "questions": {
    "suspicious": {"type": "noul", "instructions": "This order should be checked by a person before it is shipped."},
    "urgency": {
      "type": "score",
      "instructions": "How soon must somebody look at it?",
      "criteria": ["Whenever there is time", "Today", "Within the hour"]
    }
  }
}`,
};

/** The examples that this server's types can carry, and the one that its own description gives. */
export function examplesFor(types, document) {
  const written = [TICKET, CHAT, RECORD].filter(({ request }) =>
    Object.values(JSON.parse(request).questions).every(({ type }) => types.has(type)),
  );
  const own = document.paths?.["/v1/systemone"]?.post?.requestBody?.content?.["application/json"]?.example;
  const every = own && {
    title: "Every installed type",
    about: `An example of each: ${[...types.keys()].join(", ")}.`,
    request: JSON.stringify(own),
  };
  return every ? [...written, every] : written;
}
