"""Templates run in the environment that they are written for, with nothing else in scope."""

from __future__ import annotations

import pytest
from chatml_model import chat_template

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.errors import StartupError
from openjev_core.prompts.bounds import TemplateRefusal
from openjev_core.prompts.template import compile_template

MESSAGES = [{"role": "user", "content": "a", "extra": {"b": ["<é>", 1, None]}}]


def rendered(source, messages=MESSAGES):
    return compile_template(chat_template(source)).render(messages)


SHOWN = {
    "many rounds": ("{% for i in range(50000) %}{% if i == 49999 %}{{ i }}{% endif %}{% endfor %}", "49999"),
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


DEEP = "{% set ns = namespace(x=range(99) | list) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}"
MADE = "it makes more than 8,3"
STEPS = "its loops, calls and filters take more than 250,250 steps"
WIDE = "it pads a text to a width of more than five digits, or to one that stands elsewhere"

REFUSED = {
    "its own reason": ("{{ raise_exception('System first.') }}", "System first."),
    "an escape": ("{{ messages.__class__.__mro__ }}", "unsafe"),
    "a change of the messages": ("{{ messages.append(1) }}", "unsafe"),
    "a type error": ("{{ 'a' + 1 }}", "can only concatenate"),
    "an error without words": ("{{ messages[0].extra.items(1) }}", "takes no arguments"),
    "loops in loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "its loops, calls and filters take more than 250,250 steps",
    ),
    "loops in a macro": (
        "{% macro m() %}{% for i in range(99999) %}{% endfor %}{% endmacro %}{{ m() }}{{ m() }}{{ m() }}",
        "its loops, calls and filters take more than 250,250 steps",
    ),
    "a text that is repeated": ("{{ 'ab' * 10**9 }}", MADE),
    "messages that are repeated": ("{{ 10**9 * messages }}", STEPS),
    "a huge power": ("{{ 9 ** 99999999 }}", "it makes a number of more than 20,000 bits"),
    "a number that is squared": (
        "{% set ns = namespace(x=9) %}{% for i in range(40) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        "it makes a number of more than 20,000 bits",
    ),
    "more text than can be read": ("{% set x = 'x' * 999999 %}{% for i in range(9) %}{{ x }}{% endfor %}", MADE),
    "more of its own words than can be read": ("{% for i in range(99999) %}" + "x" * 100 + "{% endfor %}", MADE),
    "a macro's own words": (
        "{% macro m() %}{% for i in range(9999) %}" + "x" * 999 + "{% endfor %}{% endmacro %}{% set x = m() %}",
        MADE,
    ),
    "a block that doubles": (
        "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x %}"
        + "{{ ns.x }}" * 2
        + "{% endset %}{% endfor %}",
        MADE,
    ),
    "a huge range": ("{% for i in range(10 ** 9) %}{% endfor %}", "a call is given a number above 8,"),
    "a macro that calls itself": (
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(40) }}",
        STEPS,
    ),
    "ranges in the condition of a loop": (
        "{% for a in range(99999) if (range(99999) | select('odd') | list | length) < 0 %}{% endfor %}",
        STEPS,
    ),
    **{
        f"a text that doubles by {how}": (
            "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x = " + how + " %}{% endfor %}",
            MADE,
        )
        for how in (
            "ns.x + ns.x",
            "ns.x ~ ns.x",
            "'%s%s' % (ns.x, ns.x)",
            "'{0}{0}'.format(ns.x)",
            "[ns.x, ns.x] | join",
        )
    },
    "a list that doubles": (
        "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        STEPS,
    ),
    **{
        f"a list that holds itself twice, {what}": (
            "{% set ns = namespace(x=1, y=1) %}{% for i in range(40) %}"
            "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ " + what + " }}",
            MADE,
        )
        for what in ("ns.x", "ns.x | tojson", "ns.x | string", "ns.x == ns.y", "ns.x ~ ''", "'%s' % (ns.x,)")
    },
    **{
        f"little that becomes much by {how}": ("{% set x = 'x' * 8000 %}{{ " + how + " }}", MADE)
        for how in (
            "x | replace('x', x)",
            "x.replace('x', x)",
            "range(9999) | join(x)",
            "x.join(['a'] * 9999)",
            "[x] * 9999",
            "([x, x] * 999) | join",
            "('{0}' * 9999).format(x)",
            "('%(a)s' * 9999) | format(a=x)",
            "('a\n' * 99999) | indent(9999)",
        )
    },
    "a wide format": ("{{ '%2000000000d' | format(1) }}", WIDE),
    "a wide operator": ("{{ '%2000000000d' % 1 }}", WIDE),
    "a width beside": ("{{ '%*d' % (2000000000, 1) }}", WIDE),
    "a precision beside": ("{{ '%.*f' % (2000000000, 1) }}", WIDE),
    "a width in a field": ("{{ '{:{}}'.format(1, 2000000) }}", WIDE),
    "a text that is padded": ("{{ 'a'.ljust(10**9) }}", "a call is given a number above"),
    "wide JSON": ("{{ messages | tojson(indent=100000) }}", "it indents JSON by more than 16 spaces"),
    "deep JSON": (DEEP + "{% for i in range(99) %}{{ ns.x | tojson(indent=16) }}{% endfor %}", MADE),
    "a table of characters": ("{{ 'a'.translate({97: 'b' * 8000}) }}", "unsafe"),
    "tabs": ("{{ '\t'.expandtabs(8000000) }}", "unsafe"),
    "lists gone through": (
        "{% set x = range(50000) | list %}{% for i in range(9999) %}{{ 1 in x }}{% endfor %}",
        STEPS,
    ),
    "texts gone through": (
        "{% set x = 'x' * 4000000 %}{% for i in range(9999) %}{% if 'y' in x %}{% endif %}{% endfor %}",
        STEPS,
    ),
    "texts counted": ("{% set x = 'x' * 4000000 %}{% for i in range(9999) %}{{ x.count('y') }}{% endfor %}", STEPS),
    "slices": ("{% set x = 'x' * 4000000 %}{% for i in range(9999) %}{% set y = x[1:] %}{% endfor %}", MADE),
    "no joke of Jinja's": ("{{ lipsum(n=100) }}", "'lipsum' is undefined"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_whatever_a_template_raises_is_its_refusal(what):
    source, reason = REFUSED[what]
    with pytest.raises(TemplateRefusal, match=reason):
        rendered(source)


@pytest.mark.parametrize("name", ["batch", "center", "wordwrap", "urlize", "pprint"])
def test_filters_for_print_are_not_there(name):
    with pytest.raises(StartupError, match=f"not valid Jinja: No filter named '{name}'"):
        compile_template(chat_template("{{ 'a' | " + name + " }}"))


def test_many_messages_may_take_many_steps():
    source = "{% for m in messages %}{% if 'x' in m.content %}{{ m.content | trim }}{% endif %}{% endfor %}"
    messages = [{"role": "user", "content": "xy"}] * 50_000
    assert "xy" * 50_000 == rendered(source, messages)


def test_long_messages_may_be_made_into_much():
    source = "{% for i in range(6) %}{{ messages[0].content | replace('a', 'ab') }}{% endfor %}"
    assert 6 * 2 * 1_000_000 == len(rendered(source, [{"role": "user", "content": "a" * 1_000_000}]))


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
