"""What a state becomes: the whole table of the wire contract's section on state."""

from __future__ import annotations

import json

import pytest
from chatml_model import ALTERNATING, CHATML, PLAIN

from openjev_core import RequestError
from openjev_core.prompts.chat import DIRECTIVE
from openjev_core.prompts.state import messages_of

QUESTION = f"{DIRECTIVE}\n\nQuestion:"
USER, ASSISTANT = "<|im_start|>user\n", "<|im_start|>assistant\n"
END = "<|im_end|>\n"


def user(content, **more):
    return {"role": "user", "content": content, **more}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def call(arguments, name="look"):
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def refusal(writer, state):
    with pytest.raises(RequestError) as refused:
        writer.write(state)
    return refused.value.problems


CHATS = [
    [user("a")],
    [user(None)],
    [user("", name="Ann", id="7", refusal=None, annotations=[])],
    [{"role": role, "content": "a"} for role in ("system", "developer", "user", "assistant", "tool", "function")],
    [{"role": "assistant", "tool_calls": [call("{}")]}],
    [assistant(None, refusal="No.")],
    [assistant("", reasoning_content="Hm.")],
    [user("a", createdAt="2026-01-31", metadata={"page": 1})],
    [assistant(None, tool_calls=[call("{}")], finish_reason="tool_calls", model="m", annotations=[{"a": 1}])],
    [assistant("", reasoning_details=[{"type": "reasoning.text", "text": "Hm."}])],
    {"messages": [user("a"), assistant("b")]},
]

NO_CHATS = [
    "",
    "text",
    [],
    {},
    {"messages": []},
    {"messages": "a"},
    {"messages": [user("a")], "model": "m"},
    {"messages": [user("a"), "b"]},
    {"Messages": [user("a")]},
    ["a", "b"],
    [user("a"), "b"],
    [user("a"), {"content": "b"}],
    [{"role": 1, "content": "b"}],
    [{"role": "nobody", "content": "a"}],
    [{"role": "", "content": "a"}],
    [{"role": "customer", "content": "Refund me!"}, {"role": "agent", "content": "No."}],
    [{"name": "Ann", "role": "engineer"}, {"name": "Bob", "role": "user"}],
    [{"role": "user"}],
    [{"role": "user", "tool_calls": []}],
    [{"role": "user", "name": "Ann", "age": 3}],
    [{"role": "user", "parts": [{"type": "text", "text": "Refund me now!"}]}],
    [user("", parts=[{"type": "text", "text": "Refund me now!"}])],
    [user(None, text="Refund me now!")],
    [{"role": "user", "message": "Refund me now!"}],
    [user("a"), {"role": "assistant", "refusal": "No."}],
    [user(1)],
    [user({"type": "text", "text": "a"})],
    [[user("a")]],
    user("a"),
]


@pytest.mark.parametrize("state", CHATS)
def test_what_has_the_form_of_a_chat_is_one(state):
    messages, loc = messages_of(state)
    assert (state, ("state",)) == (messages, loc) or (state["messages"], ("state", "messages")) == (messages, loc)


@pytest.mark.parametrize("state", NO_CHATS)
def test_everything_else_is_written_whole_into_one_message(writer, state):
    assert None is messages_of(state)
    shown = state if isinstance(state, str) else json.dumps(state, separators=(",", ":"))
    assert f"{USER}{shown}{END}{USER}{QUESTION}" == writer.write(state).text


def test_numbers_keep_their_digits_and_text_its_characters(writer):
    state = {"n": 12345678901234567890123, "é": "ü", "list": [1.5, None, True]}
    assert '{"n":12345678901234567890123,"é":"ü","list":[1.5,null,true]}' in writer.write(state).text


def test_a_chat_is_written_turn_by_turn_and_the_question_is_one_more(writer):
    chat = [{"role": "system", "content": "Be brief."}, user("Hi."), assistant("Yes?"), user("Help.")]
    expected = f"<|im_start|>system\nBe brief.{END}{USER}Hi.{END}{ASSISTANT}Yes?{END}{USER}Help.{END}{USER}{QUESTION}"
    assert expected == writer.write(chat).text
    assert expected == writer.write({"messages": chat}).text


def test_thinking_is_off(writer):
    assert f"<|im_end|>\n{ASSISTANT}<think>\n\n</think>\n\nAnswer:\n" == writer.write("x").ending.text


def test_parts_are_text(writer, writer_for):
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert f"{USER}onetwo{END}" in writer.write([user(parts)]).text
    # A template that knows strings only gets a line for each.
    assert f"{USER}one\ntwo{END}" in writer_for(PLAIN).write([user(parts)]).text


@pytest.mark.parametrize("source", [CHATML, PLAIN])
def test_null_and_missing_content(writer_for, source):
    for message in (assistant(None), assistant(""), assistant([]), assistant("", tool_calls=[])):
        text = writer_for(source).write([user("a"), message, user("b")]).text
        assert f"{USER}a{END}{ASSISTANT}{END}{USER}b{END}" in text


ARGUMENTS = [
    ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
    ('{"a": [1, "é"]}', '{"a": [1, "é"]}'),
    (' {"n": 12345678901234567890} ', '{"n": 12345678901234567890}'),
    ("", "{}"),
    ("{}", "{}"),
    (None, "{}"),
]


@pytest.mark.parametrize(("arguments", "shown"), ARGUMENTS)
def test_arguments_reach_the_template_as_an_object(writer, arguments, shown):
    chat = [user("a"), assistant(None, tool_calls=[call(arguments)]), {"role": "tool", "content": "b"}]
    assert f'<tool_call>\n{{"name": "look", "arguments": {shown}}}\n</tool_call>{END}' in writer.write(chat).text


BAD_ARGUMENTS = [
    ("{'a': 1}", "expected a JSON object, or its text; the text is not JSON"),
    ("[1]", "expected a JSON object, or its text; the text holds another value"),
    ([1], "expected a JSON object, or its text"),
    (7, "expected a JSON object, or its text"),
    ("null", "the text holds another value"),
    ('{"a": NaN}', "NaN is not JSON"),
    ('{"a": 1, "a": 2}', 'has the key "a" twice'),
    ('{"a": "\\ud800"}', "lone surrogate"),
    ('{"a": 1e999}', "too large for a double"),
    ('{"a": ' + "[" * 5000, "nested too deep"),
    ('{"a": ' + "9" * 5000 + "}", "more than 4000 digits"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_ARGUMENTS)
def test_arguments_that_hold_no_object_are_refused(writer, arguments, said):
    chat = {"messages": [user("a"), assistant("", tool_calls=[call("{}"), call(arguments)])]}
    (problem,) = refusal(writer, chat)
    assert ("state", "messages", 1, "tool_calls", 1, "function", "arguments") == problem.loc
    assert said in problem.msg


@pytest.mark.parametrize("calls", [None, [], [{"function": {"name": "x", "arguments": {}}}]])
def test_tool_calls_that_say_little_are_no_fault(writer, writer_for, calls):
    for each in (writer, writer_for(PLAIN)):
        assert "b" in each.write([user("a"), assistant("b", tool_calls=calls)]).text


@pytest.mark.parametrize(
    ("calls", "loc"),
    [
        ({"function": {"name": "x"}}, ()),
        ("x", ()),
        (1, ()),
        ([None], (0,)),
        ([{}], (0,)),
        ([{"toolName": "x", "args": {}}], (0,)),
        ([{"function": None}], (0,)),
        ([{"function": {"name": "x"}}, {"function": {"name": 7}}], (1,)),
    ],
)
def test_what_is_no_tool_call_is_refused_at_its_place(writer, calls, loc):
    (problem,) = refusal(writer, [user("a"), assistant("b", tool_calls=calls)])
    assert ("state", 1, "tool_calls", *loc) == problem.loc
    assert problem.msg.startswith("expected a")


@pytest.mark.parametrize("calls", [[call('{"a": 1}')], [call({"a": 1})]])
def test_a_template_without_tool_calls_gets_them_as_text(writer_for, calls):
    text = writer_for(PLAIN).write([user("a"), assistant("b", tool_calls=calls)]).text
    assert f'{ASSISTANT}b\nTool call: {{"name":"look","arguments":{{"a":1}}}}{END}' in text


FAULTS = [
    (
        [user([{"type": "image_url", "image_url": {}}])],
        [(0, "content", 0)],
        "a part of type 'image_url': this server reads text only, no images, audio, video or files",
    ),
    (
        [user([{"type": "tool_result", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]}])],
        [(0, "content", 0, "content", 1)],
        "a part of type 'image': this server reads text only",
    ),
    (
        [user([{"type": "redacted_thinking", "data": "x"}])],
        [(0, "content", 0)],
        "a part of unknown type 'redacted_thinking'; accepted: text, input_text, output_text",
    ),
    ([user("a", images=["iVBORw0KGgo="])], [(0, "images")], "does not reach the model: put its words into content"),
    ([user("", images=["iVBORw0KGgo="])], [(0, "images")], "does not reach the model"),
    ([user("See.", attachments=[{"content": "Refund!"}])], [(0, "attachments")], "does not reach the model: put"),
    ([user("See.", image="iVBORw0KGgo=")], [(0, "image")], "does not reach the model: put"),
    ([user("", image_url="https://a.example/b.png")], [(0, "image_url")], "does not reach the model: put"),
    ([user("Hi", subject="Refund!")], [(0, "subject")], "does not reach the model: put its words into content"),
    (
        [user("Run it."), {"role": "tool", "content": "ok", "output": {"rows": 3}}],
        [(1, "output")],
        "does not reach the model: put its words into content, or leave the field out",
    ),
    (
        [user("a", mood="angry", rating=5, seen=False, tags=[])],
        [(0, "mood"), (0, "rating")],
        "does not reach the model",
    ),
    (
        [assistant("Wait.", additional_kwargs={"function_call": {"name": "refund", "arguments": "{}"}})],
        [(0, "additional_kwargs")],
        "does not reach the model",
    ),
    (
        [assistant("", tool_calls=[{**call("{}"), "result": "Lost."}])],
        [(0, "tool_calls", 0, "result")],
        "does not reach the model",
    ),
    (
        [assistant("", tool_calls=[{"type": "function", "function": {"name": "look", "output": "Lost."}}])],
        [(0, "tool_calls", 0, "function", "output")],
        "does not reach the model",
    ),
    (
        [assistant(None, function_call={"name": "look", "arguments": "{}", "result": "Lost."})],
        [(0, "function_call", "result")],
        "does not reach the model",
    ),
    (
        [assistant("", tool_calls=[{"name": "look", "arguments": {"a": 1}, "parameters": {"b": 2}}])],
        [(0, "tool_calls", 0, "parameters")],
        "does not reach the model",
    ),
    ([user([{"type": "text", "text": "a", "mood": "angry"}])], [(0, "content", 0, "mood")], "does not reach the model"),
    ([user("I know", text="no")], [(0, "text")], "says something else than content, and does not reach the model"),
    ([user("Hi", text="Refund!")], [(0, "text")], "says something else than content, and does not reach the model"),
    ([user("Hi", message={"text": "Hi"})], [(0, "message")], "says something else than content"),
    (
        [user("I know", parts=[{"type": "text", "text": "no"}])],
        [(0, "parts")],
        "says something else than content, and does not reach the model",
    ),
    (
        [user("Hi", parts=[{"type": "text", "text": "Hi"}, {"type": "file", "url": "x"}])],
        [(0, "parts")],
        "says something else than content, and does not reach the model",
    ),
    ([assistant(None, audio={"id": "audio_1"})], [(0, "audio")], "reads text only; give the words as audio.transcript"),
    ([assistant(None, refusal=7)], [(0, "refusal")], "expected a string or null"),
    ([assistant(None, function_call="auto")], [(0, "function_call")], "expected a tool call: "),
    (
        [assistant(None, function_call={"name": "look", "arguments": "[1]"})],
        [(0, "function_call", "arguments")],
        "expected a JSON object, or its text",
    ),
    ([user([{"type": "text", "text": "a"}, {"type": "input_audio"}])], [(0, "content", 1)], "text only"),
    ([user([{"type": "video", "text": "a"}])], [(0, "content", 0)], "text only"),
    ([user(["a"])], [(0, "content", 0)], "expected a text part"),
    ([user([{"type": "text"}])], [(0, "content", 0)], "expected a text part"),
    ([user([{"type": "text", "text": 1}])], [(0, "content", 0)], "expected a text part"),
    ([user([{"type": 5, "text": "a"}])], [(0, "content", 0)], "expected a text part"),
    ([user([{"text": "a"}])], [(0, "content", 0)], "expected a text part"),
    (
        [user(["a"]), user("a", files=["b"]), assistant("a", tool_calls=1)],
        [(0, "content", 0), (1, "files"), (2, "tool_calls")],
        "expected a text part",
    ),
    ([user("a", tool_calls=[call("{}")])], [(0, "tool_calls")], "only an assistant's turn has calls"),
]


@pytest.mark.parametrize(("state", "locs", "said"), FAULTS)
def test_faults_of_a_chat_are_told_all_at_once_where_they_stand(writer, state, locs, said):
    problems = refusal(writer, state)
    assert [("state", *loc) for loc in locs] == [problem.loc for problem in problems]
    assert said in problems[0].msg


def test_faults_are_looked_for_up_to_a_number(writer):
    """One more than are shown, so that it shows that there are more."""
    messages = refusal(writer, [user(["a"])] * 1000)
    assert [("state", index, "content", 0) for index in range(21)] == [problem.loc for problem in messages]
    unknown = {f"field {index}": "a" for index in range(1000)}
    for field in ({"content": ["a"] * 1000}, {"content": "a", **unknown}, {"tool_calls": [{}] * 1000}):
        assert 21 == len(refusal(writer, [{"role": "assistant", "content": "", **field}]))


def turn(message, writer):
    """How one assistant's turn is written between two of the user's."""
    text = writer.write([user("a"), message, user("b")]).text
    return text.removeprefix(f"{USER}a{END}").removesuffix(f"{USER}b{END}{USER}{QUESTION}")


LOOK = '\n<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>'

THOUGHTS = [
    # By SGLang and DeepSeek, vLLM and Groq, Ollama, GitHub Copilot, OpenRouter, litellm, Bedrock's blocks.
    ("reasoning_content", "Hm.", "Hm."),
    ("reasoning", "Hm.", "Hm."),
    ("thinking", "Hm.", "Hm."),
    ("reasoning_text", "Hm.", "Hm."),
    ("reasoning", {"effort": "Hm."}, "Hm."),
    (
        "reasoning_details",
        [
            {
                "type": "reasoning.summary",
                "summary": "First.",
                "id": "rs_1",
                "format": "openai-responses-v1",
                "index": 0,
            },
            {"type": "reasoning.text", "text": "Second.", "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "gAAAAB"},
        ],
        "First.\nSecond.",
    ),
    ("thinking_blocks", [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}], "Hm."),
    ("reasoning_details", [{"type": "reasoning.encrypted", "data": "gAAAAB"}], ""),
    ("reasoning_content", [{"reasoningText": {"text": "Hm.", "signature": "sig"}}], "Hm."),
]

WORDS = [
    (assistant(None, refusal="I can not help."), "I can not help."),
    (assistant("Sorry.", refusal="I can not help."), "Sorry.\nI can not help."),
    (assistant([{"type": "text", "text": "Sorry."}], refusal="No."), "Sorry.\nNo."),
    (assistant("No.", refusal="No."), "No."),
    (assistant("I know.", refusal="no"), "I know.\nno"),
    (assistant(None, audio={"id": "audio_1", "transcript": "Hello."}), "Hello."),
    (assistant("Hello.", audio={"transcript": "Hello."}), "Hello."),
    (assistant("Hello.", audio={"id": "audio_1"}), "Hello."),
    (assistant("", reasoning_content="Let me see."), "Let me see."),
    (assistant(None, reasoning="Let me see."), "Let me see."),
    (assistant("\n", thinking="Let me see."), "Let me see."),
    *((assistant("", **{name: thought}), shown) for name, thought, shown in THOUGHTS),
    (assistant("Yes.", reasoning_content="Let me see."), "Yes."),
    (assistant("", reasoning_content="Let me see.", tool_calls=[call({"a": 1})]), f"Let me see.{LOOK}"),
    (assistant(None, function_call={"name": "look", "arguments": '{"a": 1}'}), LOOK),
    (assistant("Yes.", text="Yes.", parts=[{"type": "step-start"}, {"type": "text", "text": "Yes."}]), "Yes."),
    (assistant("Yes.", parts=[{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}]), "Yes."),
    (assistant([{"type": "output_text", "text": "Yes.", "annotations": []}]), "Yes."),
    (assistant("Yes, sir.", parts=[{"type": "text", "text": "Yes,"}, {"type": "text", "text": "sir."}]), "Yes, sir."),
    (assistant([{"type": "refusal", "refusal": "No."}]), "No."),
    (assistant([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]), "Hm."),
    (
        assistant([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "content": None}]),
        "Hm.",
    ),
    (
        assistant([{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Yes."}]),
        "Hm.\nYes.",
    ),
    (
        assistant(
            [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "1", "name": "look", "input": {"a": 1}}]
        ),
        'I look.\nTool call: {"id":"1","name":"look","input":{"a":1}}',
    ),
    (
        assistant([{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "Lost."}]}]),
        'Tool result: {"tool_use_id":"1","content":[{"type":"text","text":"Lost."}]}',
    ),
]


@pytest.mark.parametrize(("message", "shown"), WORDS)
def test_no_words_of_a_message_are_dropped(writer, message, shown):
    assert f"{ASSISTANT}{shown}{END}" == turn(message, writer)


def test_reasoning_is_left_to_a_template_that_shows_it(writer_for):
    start = "{%- if message.content is string %}"
    writer = writer_for(CHATML.replace(start, "{{- message.reasoning_content }}..." + start, 1))
    assert f"{ASSISTANT}Hm....{END}" in turn(assistant("", reasoning_content="Hm."), writer)


SPELLINGS = [
    call({"a": 1}),
    call('{"a": 1}'),
    {"name": "look", "arguments": {"a": 1}},
    {"name": "look", "arguments": '{"a": 1}', "id": "1"},
    {"name": "look", "args": {"a": 1}, "id": "1", "type": "tool_call"},
    {"type": "tool_use", "name": "look", "input": {"a": 1}},
    {"name": "look", "parameters": {"a": 1}},
    {**call({"a": 1}), "index": 0, "extra_content": {"google": {"thought_signature": "sig"}}},
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_call_is_shown_with_its_arguments_however_it_is_spelled(writer, spelling):
    assert f"{ASSISTANT}{LOOK}{END}" == turn(assistant(None, tool_calls=[spelling]), writer)


def test_the_input_of_a_custom_tool_is_shown(writer):
    custom = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert '{"name": "sql", "arguments": {"input": "select 1"}}' in turn(assistant(None, tool_calls=[custom]), writer)


def test_calls_beside_words_are_text_where_a_template_shows_only_one_of_them(writer_for):
    """As Llama's does, which writes either the calls or the words."""
    start = "{%- if message.content is string %}"
    either = writer_for(CHATML.replace(start, "{%- if message.tool_calls %}{% elif message.content is string %}", 1))
    assert f"{ASSISTANT}{LOOK}{END}" == turn(assistant(None, tool_calls=[call({"a": 1})]), either)
    both = turn(assistant("I look.", tool_calls=[call({"a": 1})]), either)
    assert f'{ASSISTANT}I look.\nTool call: {{"name":"look","arguments":{{"a":1}}}}{END}' == both


@pytest.mark.parametrize("calls", [None, []])
def test_empty_tool_calls_are_none_to_a_template_that_counts_them(writer_for, calls):
    """As Llama's does, and SDKs write the field into every turn."""
    counting = (
        "{%- if 'tool_calls' in message and message.tool_calls | length != 1 %}{{ raise_exception('One!') }}{% endif %}"
    )
    start = "{%- if message.content is string %}"
    assert f"{ASSISTANT}b{END}" == turn(
        assistant("b", tool_calls=calls), writer_for(CHATML.replace(start, counting + start, 1))
    )


def test_roles_that_a_template_has_no_form_for_are_the_nearest_that_it_has(writer, writer_for):
    chat = [{"role": "developer", "content": "Be brief."}, user("a"), {"role": "function", "name": "f", "content": "b"}]
    expected = f"<|im_start|>system\nBe brief.{END}{USER}a{END}<|im_start|>tool\nb{END}"
    assert writer.write(chat).text.startswith(expected)
    knowing = "{{- '<|im_start|>' + (message.role if message.role != 'developer' else 'DEVELOPER') + '\\n' }}"
    source = CHATML.replace("{{- '<|im_start|>' + message.role + '\\n' }}", knowing, 1)
    assert writer_for(source).write(chat).text.startswith(f"<|im_start|>DEVELOPER\nBe brief.{END}")


def test_what_a_template_refuses_carries_its_reason(writer_for):
    writer = writer_for(ALTERNATING)
    (problem,) = refusal(writer, {"messages": [user("a"), {"role": "system", "content": "b"}]})
    assert ("state", "messages") == problem.loc
    assert "the model's chat template refuses this state: System message must be first." == problem.msg
    assert "template_refusal" == problem.type
    assert "Roles must alternate" in refusal(writer, [assistant("a")])[0].msg


def test_a_reason_shows_no_marks(writer_for):
    quoting = "{%- if 'bad' in messages[0].content %}{{ raise_exception('no: ' ~ [messages[0].content]) }}{% endif %}"
    (problem,) = refusal(writer_for(quoting + CHATML), [user("bad <|im_end|>")])
    assert "the model's chat template refuses this state: no: ['bad <|im_end|>']" == problem.msg


def test_where_roles_must_alternate_the_question_joins_the_last_user_turn(writer_for):
    writer = writer_for(ALTERNATING)
    assert f"{USER}a\n\n{QUESTION}" == writer.write("a").text
    assert f"{USER}{QUESTION}" == writer.write("").text
    parts = [user([{"type": "text", "text": "a"}])]
    assert f"{USER}a\n\n{QUESTION}" == writer.write(parts).text
    assert f"{USER}a{END}{ASSISTANT}b{END}{USER}{QUESTION}" == writer.write([user("a"), assistant("b")]).text


def system(content):
    return {"role": "system", "content": content}


def test_where_one_system_message_is_taken_those_in_a_row_are_joined(writer, writer_for):
    """Agents send several at the beginning, and templates raise on the second."""
    chat = [system("a"), {"role": "developer", "content": "b"}, system("c"), user("d")]
    assert f"<|im_start|>system\na\n\nb\n\nc{END}{USER}d\n\n{QUESTION}" == writer_for(ALTERNATING).write(chat).text
    parts = [system([{"type": "text", "text": "a"}]), system("b"), user("d")]
    assert writer_for(ALTERNATING).write(parts).text.startswith(f"<|im_start|>system\na\n\nb{END}{USER}d")
    empty = [system(""), system("b"), user("d")]
    assert writer_for(ALTERNATING).write(empty).text.startswith(f"<|im_start|>system\nb{END}{USER}d")
    assert writer.write(chat).text.startswith(f"<|im_start|>system\na{END}<|im_start|>system\nb{END}")
    assert (
        "System message must be first."
        in refusal(writer_for(ALTERNATING), [system("a"), user("b"), system("c")])[0].msg
    )


def test_long_chats_of_system_messages_alone_are_joined_at_once(writer_for):
    text = writer_for(ALTERNATING).write([system("a")] * 5000).text
    assert text.startswith("<|im_start|>system\n" + "a\n\n" * 4999 + f"a{END}")


DROPPING = {
    "a role": (
        CHATML.replace("{%- for message in messages %}", "{%- for message in messages if message.role != 'tool' %}", 1),
        [user("yes"), {"role": "tool", "content": "yes"}],
        (1,),
        "does not show this message",
    ),
    "all but the last": (
        CHATML.replace("in messages %}", "in messages[-2:] %}", 1),
        [user("yes"), assistant("yes"), user("yes")],
        (0,),
        "does not show this message",
    ),
    "all parts but one": (
        CHATML.replace("{{- part.text }}", "{%- if loop.first %}{{ part.text }}{% endif %}", 1),
        [user([{"type": "text", "text": "yes"}, {"type": "text", "text": "yes"}])],
        (0, "content", 1),
        "does not show this part",
    ),
    "what stands before a word": (
        CHATML.replace("{{- message.content }}", "{{- message.content.split('[/THINK]')[-1] }}", 1),
        [user("a"), assistant("thought[/THINK]said"), user("b")],
        (1,),
        "does not show this text whole",
    ),
    "the end of a long text": (
        CHATML.replace("{{- message.content }}", "{{- message.content[:300] }}", 1),
        [user("a" * 301)],
        (0,),
        "does not show this text whole",
    ),
}


@pytest.mark.parametrize("what", DROPPING)
def test_a_template_that_drops_something_is_a_refusal_and_no_wrong_answer(writer_for, what):
    source, chat, loc, said = DROPPING[what]
    (problem,) = refusal(writer_for(source), chat)
    assert ("state", *loc) == problem.loc
    assert said in problem.msg


def test_a_template_may_trim_move_the_system_message_and_write_json(writer_for):
    first = "{%- set ns = messages | selectattr('role', 'equalto', 'system') | list %}"
    rest = "{%- set ns = ns + (messages | rejectattr('role', 'equalto', 'system') | list) %}"
    content = "{{- (message.content | tojson) if message.role == 'tool' else (message.content | trim) }}"
    source = CHATML.replace("in messages %}", "in ns %}", 1).replace("{{- message.content }}", content, 1)
    chat = [user(" a \n"), {"role": "system", "content": "s"}, {"role": "tool", "content": 'line\n"quoted" é'}]
    text = writer_for(first + rest + source).write(chat).text
    assert text.startswith(f"<|im_start|>system\ns{END}{USER}a{END}")
    assert '"line\\n\\"quoted\\" é"' in text


def test_a_template_cuts_nothing_out_of_what_only_looks_like_thinking(writer_for):
    """Models with ``</think>`` among their tokens: the template finds no such token in a message."""
    source = CHATML.replace("{{- message.content }}", "{{- message.content.split('</think>')[-1] }}", 1)
    text = writer_for(source).write([user("a"), assistant("<think>b</think>c"), user("d")]).text
    assert f"{ASSISTANT}<think>b</think>c{END}" in text
