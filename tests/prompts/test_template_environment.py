"""Templates run in the environment that they are written for, with nothing else in scope."""

from __future__ import annotations

import pytest
from chatml_model import chat_template

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.errors import StartupError
from openjev_core.prompts.template import TemplateRefusal, compile_template

MESSAGES = [{"role": "user", "content": "a", "extra": {"b": ["<é>", 1, None]}}]


def rendered(source, messages=MESSAGES):
    return compile_template(chat_template(source)).render(messages)


SHOWN = {
    "many rounds": ("{% for i in range(99999) %}{% if i == 99998 %}{{ i }}{% endif %}{% endfor %}", "99998"),
    "small powers and repetitions": (
        "{{ 2 ** 10 }}{{ 2 ** 0.5 < 2 }}{{ 'ab' * 2 }}{{ 3 * [1] }}",
        "1024Trueabab[1, 1, 1]",
    ),
    "blocks take their line": ("{% if true %}\nx\n{% endif %}\ny", "x\ny"),
    "blocks take the space before them": ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),
    "loop controls": ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
    "tojson escapes nothing for HTML": ("{{ messages[0].extra | tojson }}", '{"b": ["<é>", 1, null]}'),
    "tojson indents": ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
    "tojson sorts and separates": (
        "{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}",
        '{"a":2,"b":1}',
    ),
    "special tokens": ("{{ bos_token }}{{ eos_token }}", "<|im_end|>"),
    "thinking is off": ("{{ enable_thinking }} {{ thinking }}", "False False"),
    "the answer begins": ("{{ add_generation_prompt }}", "True"),
    "no tools": ("{{ tools is none }} {{ documents is none }}", "True True"),
    "generation blocks": ("{% generation %}x{% endgeneration %}", "x"),
    "no clock": ("{{ strftime_now is defined }}", "False"),
    "no escape by format": ("{{ '{0.__class__}'.format(messages) }}", ""),
    "nothing of the host": ("{{ os is defined }} {{ open is defined }}", "False False"),
}


@pytest.mark.parametrize("what", SHOWN)
def test_what_templates_find(what):
    source, expected = SHOWN[what]
    assert expected == rendered(source)


REFUSED = {
    "its own reason": ("{{ raise_exception('System first.') }}", "System first."),
    "an escape": ("{{ messages.__class__.__mro__ }}", "unsafe"),
    "a change of the messages": ("{{ messages.append(1) }}", "unsafe"),
    "a type error": ("{{ 'a' + 1 }}", "can only concatenate"),
    "an error without words": ("{{ messages[0].extra.items(1) }}", "takes no arguments"),
    "loops in loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "its loops and calls take more than 250,000 steps",
    ),
    "loops in a macro": (
        "{% macro m() %}{% for i in range(99999) %}{% endfor %}{% endmacro %}{{ m() }}{{ m() }}{{ m() }}",
        "its loops and calls take more than 250,000 steps",
    ),
    "a text that is repeated": ("{{ 'ab' * 10**9 }}", "it repeats a text to more than 67,108,864 characters"),
    "messages that are repeated": ("{{ 10**9 * messages }}", "it repeats a text to more than"),
    "a huge power": ("{{ 9 ** 99999999 }}", "it takes a power above 64"),
    "more text than can be read": (
        "{% set x = 'x' * 9999999 %}{% for i in range(9) %}{{ x }}{% endfor %}",
        "it writes more than 67,108,864 characters",
    ),
    "a huge range": ("{% for i in range(10 ** 9) %}{% endfor %}", "a call is given a number above 67,108,864"),
    "a macro that calls itself": (
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(40) }}",
        "take more than 250,000 steps",
    ),
    "ranges in the condition of a loop": (
        "{% for a in range(99999) if (range(99999) | select('odd') | list | length) < 0 %}{% endfor %}",
        "take more than 250,000 steps",
    ),
    "a text that doubles": (
        "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "it makes a text of more than 67,108,864 characters",
    ),
    "a joined text that doubles": (
        "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "it makes a text of more than 67,108,864 characters",
    ),
    "a wide format": ("{{ '%2000000000d' | format(1) }}", "a width of more than five digits"),
    "a wide operator": ("{{ '%2000000000d' % 1 }}", "a width of more than five digits"),
    "a text that is padded": ("{{ 'a'.ljust(10**9) }}", "a call is given a number above"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_whatever_a_template_raises_is_its_refusal(what):
    source, reason = REFUSED[what]
    with pytest.raises(TemplateRefusal, match=reason):
        rendered(source)


def test_special_tokens_of_the_model():
    template = ChatTemplate("{{ bos_token }}|{{ eos_token }}", "<s>", "</s>")
    assert "<s>|</s>" == compile_template(template).render(MESSAGES)


@pytest.mark.parametrize("source", ["{% for %}", "{{ x", "{% unknown %}", "{% include 'x' %}{% endif %}"])
def test_what_is_no_template_ends_the_start(source):
    with pytest.raises(StartupError, match="not valid Jinja"):
        compile_template(chat_template(source))


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deep to be compiled"),
        ("{{ " + "[" * 250 + "]" * 250 + " }}", "nested too deep to be compiled"),
        ("{% if x %}" * 5000 + "{% endif %}" * 5000, "nested too deep to be compiled"),
        ("{% for a in b %}" * 30 + "{% endfor %}" * 30, "not valid Jinja: too many statically nested blocks"),
        ("{{ " + "9" * 5000 + " }}", "not valid Jinja: Exceeds the limit"),
    ],
    ids=["parentheses", "brackets", "blocks", "loops", "digits"],
)
def test_what_compilers_give_up_on_ends_the_start_in_one_line(source, fault):
    with pytest.raises(StartupError, match=fault) as refused:
        compile_template(chat_template(source))
    assert 1 == len(str(refused.value).splitlines())
