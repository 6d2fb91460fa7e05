"""Wrong plugins: what an author may get wrong, each with the rule and the remedy that the checks have to name."""

from __future__ import annotations

from plugin_distribution import WORKING, working

READOUTS = "    return [Readout(text=question.instructions.strip(), options=options)]\n"
REDUCE = '    return Answer(heads=distributions[0]["heads"])\n'
HOOK = "@hookimpl\ndef openjev_question_types():\n    return [question_type()]\n"


def instead(old, new):
    """The working plugin with another piece in place of one of its own."""
    assert 1 == WORKING.count(old), old
    return WORKING.replace(old, new)


def before(line):
    """The working plugin with a line of its own at import."""
    return instead("@frozen(kw_only=True)\nclass Question", f"{line}\n\n\n@frozen(kw_only=True)\nclass Question")


def hook(body):
    """A plugin whose hook does something else."""
    return instead(HOOK, f"@hookimpl\ndef openjev_question_types():\n    {body}\n")


def asked(annotation, more=""):
    """A question with a field of another type, and with what that needs."""
    source = instead("    instructions: str\n", f"    instructions: str\n    more: {annotation}\n")
    source = source.replace('Question(instructions="Which side?")', 'Question(instructions="Which side?", more=None)')
    return source.replace("\n\n@frozen", f"\n{more}\n\n@frozen", 1)


def answered(annotation):
    """An answer with a field of another type."""
    return instead("    heads: float\n", f"    heads: {annotation}\n")


def reading(body):
    """Readouts of another kind; ``options`` are there."""
    return instead(READOUTS, "".join(f"    {line}\n" for line in body.split("\n")))


def reducing(body):
    """Another reducer."""
    return instead(REDUCE, "".join(f"    {line}\n" for line in body.split("\n")))


def returning(expression):
    """An answer that is made otherwise."""
    return reducing(f"return {expression}")


def suffix(body):
    """A suffix of the type's own."""
    source = working(suffix="suffix")
    return source.replace("def reduce(", f"def suffix(readout, labelled):\n    {body}\n\n\ndef reduce(")


def own_labels(*labels, options=None):
    """A type with labels of its own, which its options use."""
    source = working(labels=repr(labels))
    used = options or labels
    sides = ", ".join(
        f"Option(key={key!r}, text={key!r}, label={label!r})"
        for key, label in zip(("heads", "tails"), used, strict=True)
    )
    return source.replace('(Option(key="heads", text="heads"), Option(key="tails", text="tails"))', f"({sides})")


IMPORTING = {
    "no such module": (before("import no_such_module"), "ModuleNotFoundError: No module named 'no_such_module'"),
    "no such name": (
        before("from openjev_core import NoSuchName"),
        "ImportError: cannot import name 'NoSuchName' from 'openjev_core'",
    ),
    "a name that is not defined": (before("SIDES = sides"), "NameError: name 'sides' is not defined"),
    "a division by zero": (before("HALF = 1 / 0"), "ZeroDivisionError: division by zero"),
    "an exit": (before("raise SystemExit('no licence')"), "SystemExit: no licence"),
    "an exit without words": (before("raise SystemExit"), "SystemExit: no message"),
    "an interrupt of its own": (before("raise GeneratorExit"), "GeneratorExit: no message"),
    "a file that is not there": (
        before("KEY = open('/no/such/file').read()"),
        "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
    ),
    "a variable that is not set": (
        before("import os\n\nKEY = os.environ['NO_SUCH_VARIABLE']"),
        "KeyError: 'NO_SUCH_VARIABLE'",
    ),
    "an assertion": (before("assert False, 'never'"), "AssertionError: never"),
    "endless recursion": (before("def f():\n    f()\n\n\nf()"), "RecursionError: maximum recursion depth exceeded"),
    "an exception without words": (before("raise ValueError"), "ValueError: no message"),
    "an exception whose words are lines": (before("raise ValueError('one\\ntwo')"), "ValueError: one two"),
    "an exception whose words raise": (
        before("class Odd(Exception):\n    def __str__(self):\n        raise KeyError\n\n\nraise Odd"),
        "Odd: no message",
    ),
    "bad syntax": (instead("def reduce(", "def reduce("[:-1]), "SyntaxError: unmatched ')'"),
    "bad indentation": (before("  x = 1"), "IndentationError: unexpected indent"),
    "a tab among spaces": (
        before("if True:\n\tx = 1\n        y = 2"),
        "TabError: inconsistent use of tabs and spaces in indentation",
    ),
}
HOOKS = {
    "an empty module": (
        "",
        "ValueError: no hook found: define `openjev_question_types` and decorate it with",
    ),
    "no decorator": (
        WORKING.replace("@hookimpl\n", ""),
        "ValueError: no hook found: define `openjev_question_types` and decorate it with",
    ),
    "another project's decorator": (
        WORKING.replace("@hookimpl\n", "@pluggy.HookimplMarker('other')\n").replace(
            "from attrs import frozen\n", "import pluggy\nfrom attrs import frozen\n"
        ),
        "ValueError: no hook found: define `openjev_question_types` and decorate it with",
    ),
    "a misspelt hook": (
        WORKING.replace("def openjev_question_types", "def openjev_question_type"),
        "unknown hook 'openjev_question_type'; the hooks are openjev_question_types(), openjev_engines(),",
    ),
    "a hook with an argument": (
        WORKING.replace("def openjev_question_types():", "def openjev_question_types(config):"),
        "Argument(s) {'config'} are declared in the hookimpl but can not be found in the hookspec",
    ),
    "a hook that raises": (hook("raise RuntimeError('not today')"), "RuntimeError: not today"),
    "a hook that exits": (hook("raise SystemExit(3)"), "SystemExit: 3"),
    "a hook without return": (
        hook("[question_type()]"),
        "openjev_question_types returned None; end it with `return`",
    ),
    "a hook that is a coroutine": (
        WORKING.replace("def openjev_question_types", "async def openjev_question_types"),
        "openjev_question_types returned coroutine; return a list of QuestionType",
    ),
    "a hook that is a generator": (
        hook("yield question_type()"),
        "openjev_question_types returned generator; return a list of QuestionType",
    ),
    "no list": (
        hook("return question_type()"),
        "openjev_question_types returned QuestionType; return a list of QuestionType",
    ),
    "a text": (hook("return 'coin'"), "openjev_question_types returned a str; return QuestionType records"),
    "a dict": (
        hook("return {'coin': question_type()}"),
        "openjev_question_types returned dict; return a list of QuestionType",
    ),
    "a set": (
        hook("return {1}"),
        "its question has a field `Question.more` of type set[str], which has no strict form in JSON",
    ),
    "the function in place of the record": (
        hook("return [question_type]"),
        "openjev_question_types returned a function; return QuestionType records",
    ),
    "a class in place of a record": (
        hook("return [QuestionType]"),
        "openjev_question_types returned a type; return QuestionType records",
    ),
    "a question in place of a type": (
        hook("return [Question(instructions='?')]"),
        "openjev_question_types returned a Question; return QuestionType records",
    ),
    "None in the list": (
        hook("return [None]"),
        "openjev_question_types returned a NoneType; return QuestionType records",
    ),
    "a list in the list": (
        hook("return [[question_type()]]"),
        "openjev_question_types returned a list; return QuestionType records",
    ),
    "one type twice": (
        hook("return [question_type(), question_type()]"),
        "two question types have one name: coin, coin; give each a name of its own",
    ),
    "a command of openjev's name": (
        WORKING + "\n\n@hookimpl\ndef openjev_commands():\n    return {'serve': print}\n",
        "the command 'serve' is one of openjev's own; choose another name",
    ),
    "a command that is no function": (
        WORKING + "\n\n@hookimpl\ndef openjev_commands():\n    return {'toss': 'heads'}\n",
        "openjev_commands returned a dict that maps 'toss' to str; return a dict of name to function",
    ),
    "a command with a bad name": (
        WORKING + "\n\n@hookimpl\ndef openjev_commands():\n    return {'a b': print}\n",
        "'a b' is no name for a command: a lower-case letter, then letters, digits, - or _, 64 characters at",
    ),
    "a list of commands": (
        WORKING + "\n\n@hookimpl\ndef openjev_commands():\n    return [print]\n",
        "openjev_commands returned list; return a dict of name to function",
    ),
    "an engine that is none": (
        WORKING + "\n\n@hookimpl\ndef openjev_engines():\n    return ['coin']\n",
        "openjev_engines returned a str; return EngineType records",
    ),
    "an observer with another argument": (
        WORKING + "\n\n@hookimpl\ndef openjev_evaluation_finished(answers):\n    pass\n",
        "Argument(s) {'answers'} are declared in the hookimpl but can not be found in the hookspec",
    ),
}
RECORDS = {
    "an upper-case name": (
        working(name="'Coin'"),
        "'name' must match regex '[a-z][a-z0-9_-]{0,63}' ('Coin' doesn't)",
    ),
    "an empty name": (working(name="''"), "'name' must match regex '[a-z][a-z0-9_-]{0,63}' ('' doesn't)"),
    "a name with a space": (
        working(name="'coin flip'"),
        "'name' must match regex '[a-z][a-z0-9_-]{0,63}' ('coin flip' doesn't)",
    ),
    "a name with a line break": (
        working(name="'coin\\n'"),
        "'name' must match regex '[a-z][a-z0-9_-]{0,63}' ('coin\\n' doesn't)",
    ),
    "a long name": (
        working(name="'c' * 65"),
        "'name' must match regex '[a-z][a-z0-9_-]{0,63}'",
    ),
    "a name that is no text": (
        working(name="7"),
        "'name' must be <class 'str'> (got 7 that is a <class 'int'>).",
    ),
    "no name": (
        WORKING.replace('name="coin", ', ""),
        "QuestionType.__init__() missing 1 required keyword-only argument: 'name'",
    ),
    "a field that the record lacks": (
        working(sumary="'?'"),
        "QuestionType.__init__() got an unexpected keyword argument 'sumary'",
    ),
    "a summary that is no text": (
        working(summary="None"),
        "'summary' must be <class 'str'> (got None that is a <class 'NoneType'>).",
    ),
    "an empty summary": (working(summary="''"), "summary: it is ''"),
    "a summary of two lines": (working(summary="'one\\ntwo'"), "summary: it is 'one\\ntwo'"),
    "version 2": (
        working(api="2"),
        "was written for contract version 2; this openjev speaks version 1: install a release",
    ),
    "version None": (
        working(api="None"),
        "was written for contract version None; this openjev speaks version 1: install a release",
    ),
    "version True": (
        working(api="True"),
        "was written for contract version True; this openjev speaks version 1: install a release",
    ),
    "version 1.0": (
        working(api="1.0"),
        "was written for contract version 1.0; this openjev speaks version 1: install a release",
    ),
    "a version that is text": (
        working(api="'1'"),
        "was written for contract version '1'; this openjev speaks version 1: install a release",
    ),
    "a question that is a dict": (
        working(question="dict"),
        "its question is no attrs class; decorate it with attrs.frozen(kw_only=True)",
    ),
    "a question that is an instance": (
        working(question="Question(instructions='?')"),
        "its question is no attrs class; decorate it with attrs.frozen(kw_only=True)",
    ),
    "a question that is no attrs class": (
        instead(
            "@frozen(kw_only=True)\nclass Question:\n    instructions: str\n",
            "class Question:\n    def __init__(self, instructions):\n        self.instructions = instructions\n",
        ),
        "its question is no attrs class; decorate it with attrs.frozen(kw_only=True)",
    ),
    "an answer that is a name": (
        working(answer="'Answer'"),
        "its answer is no attrs class; decorate it with attrs.frozen(kw_only=True)",
    ),
    "an answer that is None": (
        working(answer="None"),
        "its answer is no attrs class; decorate it with attrs.frozen(kw_only=True)",
    ),
    "readouts that are a list": (
        working(readouts="[]"),
        "its readouts cannot be called; give a function",
    ),
    "a reducer that is None": (
        working(reduce="None"),
        "its reduce cannot be called; give a function",
    ),
    "a suffix that is a text": (
        working(suffix="'{readout}'"),
        "its suffix cannot be called; give a function",
    ),
    "labels that are a text": (
        working(labels="'Yes'"),
        "its labels are 'Yes', which is no tuple; write `labels=(..., )`",
    ),
    "labels that are a number": (
        working(labels="7"),
        "its labels are 7, which is no tuple; write `labels=(..., )`",
    ),
    "a label that is a number": (
        working(labels="(7, 8)"),
        "its label 7 is no text without outer white space; write one such as 'Yes'",
    ),
    "a label with white space": (
        working(labels="(' Yes', 'No')"),
        "its label ' Yes' is no text without outer white space; write one such as 'Yes'",
    ),
    "an empty label": (
        working(labels="('', 'No')"),
        "its label '' is no text without outer white space; write one such as 'Yes'",
    ),
    "an example without its comma": (
        working(examples="Question(instructions='?')"),
        "its examples are Question(instructions='?'), which is no tuple; write `examples=(..., )`",
    ),
    "an example that is a dict": (
        working(examples="({'instructions': '?'},)"),
        "an example is a dict; give instances of Question",
    ),
    "no examples": (working(examples="()"), "examples: there are none"),
}
CLASSES = {
    "a question with a type": (
        asked("int | None = None").replace("more:", "type:").replace(", more=None", ""),
        "its question has a field `type`, which the engine adds itself; remove it",
    ),
    "an answer with a type": (
        answered("float\n    type: str = 'coin'"),
        "its answer has a field `type`, which the engine adds itself; remove it",
    ),
    "a set": (
        asked("set[str] | None"),
        "its question has a field `Question.more` of type set[str], which has no strict form in JSON",
    ),
    "bytes": (
        asked("bytes | None"),
        "its question has a field `Question.more` of type bytes, which has no strict form in JSON",
    ),
    "a complex number": (
        asked("complex | None"),
        "its question has a field `Question.more` of type complex, which has no strict form in JSON",
    ),
    "a decimal": (
        asked("Decimal | None", "from decimal import Decimal\n"),
        "its question has a field `Question.more` of type Decimal, which has no strict form in JSON",
    ),
    "a path": (
        asked("Path | None", "from pathlib import Path\n"),
        "its question has a field `Question.more` of type Path, which has no strict form in JSON",
    ),
    "an object": (
        asked("object"),
        "its question has a field `Question.more` of type object, which has no strict form in JSON",
    ),
    "a fixed tuple": (
        asked("tuple[int, str] | None"),
        "its question has a field `Question.more` of type tuple[int, str], which has no strict form in JSON",
    ),
    "keys that are numbers": (
        asked("dict[int, str] | None"),
        "its question has a field `Question.more` of type dict[int, str], which has no strict form in JSON",
    ),
    "a callable": (
        asked("Callable[[int], int] | None", "from collections.abc import Callable\n"),
        "its question has a field `Question.more` of type collections.abc.Callable[[int], int], which has no",
    ),
    "a dataclass": (
        asked("Side | None", "from dataclasses import dataclass\n\n\n@dataclass\nclass Side:\n    name: str\n"),
        "its question has a field `Question.more` of type Side, which has no strict form in JSON",
    ),
    "a plain class": (
        asked("Side | None", "class Side:\n    pass\n"),
        "its question has a field `Question.more` of type Side, which has no strict form in JSON",
    ),
    "a misspelt annotation": (
        asked("Strng | None"),
        "its question has an annotation that cannot be resolved: name 'Strng' is not defined; import what it",
    ),
    "an annotation that cannot be imported": (
        asked("json.Decoder | None"),
        "its question has an annotation that cannot be resolved: name 'json' is not defined; import what it",
    ),
    "an annotation that is no expression": (
        asked("'list['"),
        "its question has an annotation that cannot be resolved: Forward reference must be an expression --",
    ),
    "two lists": (
        asked("list[int] | list[str] | None"),
        "its question has a field `Question.more` of type list[int] | list[str] | None, two members of which",
    ),
    "two classes that look alike": (
        asked("One | Other | None", "@frozen\nclass One:\n    x: int\n\n\n@frozen\nclass Other:\n    x: int\n"),
        "its question has a field `Question.more` of type openjev_coin.One | openjev_coin.Other | None, two",
    ),
    "two fields of one name": (
        asked("int = attrs.field(default=0, metadata={'wire': 'instructions'})", "import attrs\n").replace(
            ", more=None", ""
        ),
        "its question has a field `Question.more` with the name 'instructions' in JSON; give each field one",
    ),
    "an answer with a set": (
        answered("set[str]"),
        "its answer has a field `Answer.heads` of type set[str], which has no strict form in JSON",
    ),
    "an answer with a misspelt annotation": (
        answered("flaot"),
        "its answer has an annotation that cannot be resolved: name 'flaot' is not defined; import what it",
    ),
    "an unknown type inside a list": (
        answered("list[bytes]"),
        "its answer has a field `Answer.heads` of type bytes, which has no strict form in JSON",
    ),
    "an example that its class would refuse": (
        working(examples="(Question(instructions=7),)"),
        "structure, example 0: its JSON does not structure: instructions: expected a string, found an integer",
    ),
    "an example that is not finite": (
        asked("float").replace("more=None", "more=float('nan')"),
        "structure, example 0: it holds a number that is not finite at more",
    ),
    "a class without equality": (
        WORKING.replace("@frozen(kw_only=True)\nclass Question", "@frozen(kw_only=True, eq=False)\nclass Question"),
        "structure, example 0: it comes back from JSON as Question(instructions='Which side?')",
    ),
    "a validator with a fault": (
        asked("int = attrs.field(default=1, validator=lambda *_: {}['x'])", "import attrs\n").replace(
            ", more=None", ""
        ),
        "KeyError: 'x'",
    ),
    "a converter that changes its own result": (
        asked("int = attrs.field(default=1, converter=lambda n: n + 1)", "import attrs\n").replace(", more=None", ""),
        "structure, example 0: it comes back from JSON as Question(instructions='Which side?', more=3)",
    ),
}
READING = {
    "readouts that return None": (
        reading("pass"),
        "readouts, example 0: readouts returned NoneType; yield each Readout, or return a list of them",
    ),
    "readouts that return one": (
        reading('return Readout(text="?", options=options)'),
        "readouts, example 0: readouts returned Readout; yield each Readout, or return a list of them",
    ),
    "no readouts": (reading("return []"), "readouts, example 0: there are none"),
    "a text in place of a readout": (
        reading("return ['?']"),
        "readouts, example 0: readouts gave a str, not a Readout or a sequence of them",
    ),
    "None in place of a readout": (
        reading("return [None]"),
        "readouts, example 0: readouts gave a NoneType, not a Readout or a sequence of them",
    ),
    "a tuple in place of a readout": (
        reading('return [("?", options)]'),
        "readouts, example 0: readouts gave a tuple, whose distributions only a generator can be given",
    ),
    "a readout that raises": (reading("raise ValueError('no')"), "readouts, example 0: readouts raised ValueError: no"),
    "readouts that raise late": (
        reading('yield Readout(text="?", options=options)\nraise KeyError("late")'),
        "readouts, example 0: readouts raised KeyError: 'late'",
    ),
    "readouts that exit": (reading("raise SystemExit"), "readouts, example 0: readouts raised SystemExit: no message"),
    "an example that is refused": (
        reading("from openjev_core import InvalidQuestion\nraise InvalidQuestion('no side', ('instructions',))"),
        "readouts, example 0: instructions: no side",
    ),
    "a fault for some questions": (
        reading('return [Readout(text=f"Which? {question.instructions.strip()[0]}", options=options)]'),
        "errors: instructions='': readouts raised IndexError: string index out of range",
    ),
    "a refusal without a path": (
        reading(
            "from openjev_core import InvalidQuestion\nif not question.instructions:\n    raise InvalidQuestion('nothing is asked')\nreturn [Readout(text='?', options=options)]"
        ),
        "errors: instructions='' is refused without a path: nothing is asked",
    ),
    "a text with white space": (
        reading("return [Readout(text=' ?', options=options)]"),
        "readouts, example 0: a readout's text is no string without outer white space",
    ),
    "a text that is a number": (
        reading("return [Readout(text=7, options=options)]"),
        "readouts, example 0: a readout's text is no string without outer white space",
    ),
    "a text that is None": (
        reading("return [Readout(text=None, options=options)]"),
        "readouts, example 0: a readout's text is no string without outer white space",
    ),
    "no options": (
        reading("return [Readout(text='?', options=())]"),
        "readouts, example 0: a coin question takes 1 to 64 options (max_answers), found 0",
    ),
    "an option that is a text": (
        reading("return [Readout(text='?', options=('heads', 'tails'))]"),
        "readouts, example 0: a readout's options are not all Option records with a text",
    ),
    "options that are a text": (
        reading("return [Readout(text='?', options='heads')]"),
        "readouts, example 0: a readout's options are a str, not a tuple of Option",
    ),
    "options that are None": (
        reading("return [Readout(text='?', options=None)]"),
        "readouts, example 0: a readout's options are a NoneType, not a tuple of Option",
    ),
    "65 options": (
        reading("return [Readout(text='?', options=[Option(key=n, text=str(n)) for n in range(65)])]"),
        "readouts, example 0: a coin question takes 1 to 64 options (max_answers), found 65",
    ),
    "an option without a text": (
        reading("return [Readout(text='?', options=(Option(key='heads', text=None), options[1]))]"),
        "readouts, example 0: a readout's options are not all Option records with a text",
    ),
    "one key twice": (
        reading("return [Readout(text='?', options=(options[0], options[0]))]"),
        "readouts, example 0: two options of a readout have one key",
    ),
    "a key that cannot be hashed": (
        reading("return [Readout(text='?', options=(Option(key=[], text='heads'), options[1]))]"),
        "readouts, example 0: an option's key cannot be hashed",
    ),
    "a path that is a text": (
        reading("return [Readout(text='?', options=options, loc='instructions')]"),
        "readouts, example 0: a readout's loc is no tuple of field names and positions",
    ),
    "a path of other things": (
        reading("return [Readout(text='?', options=options, loc=(1.5,))]"),
        "readouts, example 0: a readout's loc is no tuple of field names and positions",
    ),
    "readouts without end": (
        reading("while True:\n    yield Readout(text='?', options=options)"),
        "readouts, example 0: there are 512 or more",
    ),
    "rounds without end": (
        reading("while True:\n    yield [Readout(text='?', options=options)]"),
        "readouts, example 0: there are 512 or more",
    ),
    "an empty round": (
        reading("yield []"),
        "readouts, example 0: readouts yielded an empty sequence; yield at least one Readout, or none and go",
    ),
    "a round of no generator": (
        reading("return [[Readout(text='?', options=options)]]"),
        "readouts, example 0: readouts gave a list, whose distributions only a generator can be given",
    ),
    "a later round with a fault": (
        reading(
            "(first,) = yield [Readout(text='?', options=options)]\nyield Readout(text=first.text, options=options)"
        ),
        "readouts, example 0: readouts raised AttributeError: 'Distribution' object has no attribute 'text'",
    ),
    "a fault where heads are certain": (
        reading(
            "(first,) = yield [Readout(text='?', options=options)]\nif first['heads'] == 1:\n    yield Readout(text=' ', options=options)"
        ),
        "readouts, example 0, certain of the first: a readout's text is no string without outer white space",
    ),
    "readouts that cannot be closed": (
        reading(
            "while True:\n    try:\n        yield Readout(text='?', options=options)\n    except GeneratorExit:\n        pass"
        ),
        "readouts, example 0: there are 512 or more",
    ),
    "readouts that depend on chance": (
        reading("import random\nreturn [Readout(text=str(random.random()), options=options)]"),
        "readouts, example 0: they differ from one call to the next",
    ),
    "readouts that count": (
        before("import itertools\n\nCOUNT = itertools.count()").replace(
            READOUTS, "    return [Readout(text=str(next(COUNT)), options=options)]\n"
        ),
        "readouts, example 0: they differ from one call to the next",
    ),
    "an option with a field that it lacks": (
        reading("return [Readout(text='?', options=(Option(key=1, txt='x'), options[1]))]"),
        "readouts raised TypeError: Option.__init__() got an unexpected keyword argument 'txt'",
    ),
}
SUFFIXES = {
    "a suffix that raises": (suffix("raise ValueError('no')"), "suffix, example 0: it raised ValueError: no"),
    "a suffix that is None": (suffix("pass"), "suffix, example 0: it is no string without outer white space"),
    "a suffix with white space": (
        suffix("return ' '.join(label for label, _ in labelled) + ' '"),
        "suffix, example 0: it is no string without outer white space",
    ),
    "a suffix without the labels": (suffix("return readout.text"), "suffix, example 0: labels are not shown: L0, L1"),
    "a suffix that depends on chance": (
        suffix("import random\n    return ' '.join(label for label, _ in labelled) + str(random.random())"),
        "suffix, example 0: it differs from one call to the next",
    ),
    "a suffix with another argument": (
        suffix("return ''").replace("def suffix(readout, labelled)", "def suffix(readout)"),
        "suffix, example 0: it raised TypeError: suffix() takes 1 positional argument but 2 were given",
    ),
}
REDUCING = {
    "a reducer that raises": (
        returning("1 / 0"),
        "reduce, example 0, uniform: it raised ZeroDivisionError: division by zero",
    ),
    "a reducer that exits": (
        reducing("raise SystemExit"),
        "reduce, example 0, uniform: it raised SystemExit: no message",
    ),
    "a reducer that returns nothing": (
        reducing("pass"),
        "reduce, example 0, uniform: reduce returned a NoneType, not a Answer",
    ),
    "a reducer that returns a dict": (
        returning("{'heads': 0.5}"),
        "reduce, example 0, uniform: reduce returned a dict, not a Answer",
    ),
    "a reducer that returns the question": (
        returning("question"),
        "reduce, example 0, uniform: reduce returned a Question, not a Answer",
    ),
    "a key that no option has": (
        returning("Answer(heads=distributions[0]['haeds'])"),
        "reduce, example 0, uniform: it raised KeyError: 'haeds'",
    ),
    "a reducer that asks for more readouts than there are": (
        returning("Answer(heads=distributions[1]['heads'])"),
        "reduce, example 0, uniform: it raised IndexError: list index out of range",
    ),
    "a reducer with another argument": (
        instead("def reduce(question, distributions):", "def reduce(distributions):"),
        "reduce, example 0, uniform: it raised TypeError: reduce() takes 1 positional argument but 2 were",
    ),
    "a logarithm of zero": (
        before("import math").replace(REDUCE, "    return Answer(heads=math.log(distributions[0]['heads']))\n"),
        "reduce, example 0, certain of the last: it raised ValueError: math domain error",
    ),
    "a division by what may be zero": (
        returning("Answer(heads=1 / distributions[0]['heads'])"),
        "reduce, example 0, certain of the last: it raised ZeroDivisionError: float division by zero",
    ),
    "infinity": (
        returning("Answer(heads=float('inf'))"),
        "reduce, example 0, uniform: its answer holds a number that is not finite at heads",
    ),
    "no number": (
        returning("Answer(heads=float('nan'))"),
        "reduce, example 0, uniform: its answer holds a number that is not finite at heads",
    ),
    "a text in place of a number": (
        returning("Answer(heads='high')"),
        "reduce, example 0, uniform: its answer is not what Answer says: heads: expected a number, found a",
    ),
    "None in place of a number": (
        returning("Answer(heads=None)"),
        "reduce, example 0, uniform: its answer is not what Answer says: heads: expected a number, found null",
    ),
    "a number of another library": (
        returning("Answer(heads=__import__('decimal').Decimal('0.5'))"),
        "reduce, example 0, uniform: its answer holds a Decimal, which is no JSON, at heads",
    ),
    "a lone surrogate": (
        answered("str").replace(REDUCE, "    return Answer(heads='\\ud800')\n"),
        "reduce, example 0, uniform: its answer holds a lone surrogate, which is no character, at heads",
    ),
    "a set in the answer": (
        answered("Any")
        .replace("from attrs", "from typing import Any\n\nfrom attrs")
        .replace(REDUCE, "    return Answer(heads={1})\n"),
        "reduce, example 0, uniform: its answer holds a set, which is no JSON, at heads",
    ),
    "a number for a key": (
        answered("dict[str, float]").replace(REDUCE, "    return Answer(heads={1: 0.5})\n"),
        "reduce, example 0, uniform: its answer holds a key that is no string of characters at heads",
    ),
    "a list that is too deep to write": (
        answered("list[Any]")
        .replace("from attrs", "from typing import Any\n\nfrom attrs")
        .replace(REDUCE, "    own = []\n    own.append(own)\n    return Answer(heads=own)\n"),
        "reduce, example 0, uniform: its answer cannot be written: RecursionError: maximum recursion depth",
    ),
    "a subclass with a field of its own": (
        reducing("@frozen(kw_only=True)\nclass More(Answer):\n    tails: float\n\nreturn More(heads=0.5, tails=0.5)"),
        "reduce, example 0, uniform: its answer is not what Answer says: tails: unknown field; accepted:",
    ),
    "an answer outside its bounds": (
        answered("Annotated[float, msgspec.Meta(le=0.4)]").replace(
            "from attrs", "from typing import Annotated\n\nimport msgspec\nfrom attrs"
        ),
        "reduce, example 0, uniform: its answer is not what Answer says: heads: expected `float` <= 0.4",
    ),
    "a reducer that depends on chance": (
        returning("Answer(heads=__import__('random').random())"),
        "reduce, example 0, uniform: two calls gave two answers",
    ),
    "a reducer that depends on time": (
        returning("Answer(heads=__import__('time').perf_counter())"),
        "reduce, example 0, uniform: two calls gave two answers",
    ),
    "a reducer that changes the question": (
        instead("@frozen(kw_only=True)\nclass Question", "@define(kw_only=True)\nclass Question")
        .replace("import frozen", "import define, frozen")
        .replace(REDUCE, "    question.instructions += '!'\n    return Answer(heads=0.5)\n"),
        "reduce, example 0, uniform: it changed the question",
    ),
}
LABELS = {
    "a label of two tokens": (
        own_labels("Unsure and more", "No"),
        "labels: 'Unsure and more' does not work on toy: it is 15 tokens",
    ),
    "labels that are not declared": (
        own_labels("Yes", "No", options=("Yes", "Maybe")),
        "readouts, example 0: a readout uses labels that the type does not declare: Maybe",
    ),
    "labels for some options": (
        own_labels("Yes", "No", options=("Yes", None)),
        "readouts, example 0: a readout's options have own labels in part, or one label twice",
    ),
    "one label for two options": (
        own_labels("Yes", "No", options=("Yes", "Yes")),
        "readouts, example 0: a readout's options have own labels in part, or one label twice",
    ),
}

WRONG = {**IMPORTING, **HOOKS, **RECORDS, **CLASSES, **READING, **SUFFIXES, **REDUCING, **LABELS}
"""What is wrong, to the source of a plugin and what the checks say of it."""
