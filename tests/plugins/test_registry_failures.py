"""Whatever is wrong with a plugin is recorded, with its cause, and harms no other plugin."""

from __future__ import annotations

import pytest
from plugin_distribution import WORKING, install, working

from openjev_core.plugins.registry import Registry, load_registry, registry_of

BUILT_IN = {"choice", "noul", "score"}


def entry_of(registry, distribution):
    return next(entry for entry in registry.entries if entry.distribution == distribution)


def test_a_plugin_is_found_by_its_entry_point(site):
    install(site, "openjev-coin", WORKING, version="2.1")
    registry = load_registry()
    entry = entry_of(registry, "openjev-coin")
    assert ("openjev_coin", "2.1", "loaded", None) == (entry.name, entry.version, entry.status, entry.cause)
    assert BUILT_IN | {"coin"} == set(registry.types)
    assert "openjev-coin" == registry.distribution_of("coin")
    assert "openjev" == registry.distribution_of("noul")
    with pytest.raises(KeyError):
        registry.distribution_of("dice")
    assert () == registry.failures


def asking(annotation):
    return WORKING.replace("instructions: str", f"instructions: {annotation}")


FAULTS = {
    "broken import": (
        "import no_such_module_anywhere",
        "ModuleNotFoundError: No module named 'no_such_module_anywhere' (openjev_coin.py:1)",
    ),
    "syntax error": ("def openjev_question_types(:", "SyntaxError"),
    "exit on import": ("import sys\n\nsys.exit('no licence')", "SystemExit: no licence (openjev_coin.py:3)"),
    "exit in the hook": (
        WORKING.replace("return [question_type()]", "raise SystemExit(3)"),
        "SystemExit: 3 (openjev_coin.py:",
    ),
    "base exception": ("raise GeneratorExit", "GeneratorExit: no message (openjev_coin.py:1)"),
    "misspelt hook": (
        WORKING.replace("def openjev_question_types", "def openjev_question_type"),
        "unknown hook 'openjev_question_type'",
    ),
    "hook with an argument": (WORKING.replace("types():", "types(config):"), "definition"),
    "no hook": (WORKING.replace("@hookimpl", ""), "no hook found: define `openjev_question_types` and decorate it"),
    "an empty module": ("", "no hook found"),
    "no list": (WORKING.replace("[question_type()]", "question_type()"), "returned QuestionType; return a list"),
    "no records": (WORKING.replace("[question_type()]", "[1]"), "returned a int; return QuestionType records"),
    "one name twice": (
        WORKING.replace("[question_type()]", "[question_type()] * 2"),
        "two question types have one name: coin, coin",
    ),
    "version from the core": (
        working(api=2),
        "'coin' was written for contract version 2; this openjev speaks version 1",
    ),
    "no version": (working(api="None"), "contract version None; this openjev speaks version 1"),
    "no attrs question": (working(question="dict"), "its question is no attrs class; decorate it with attrs.frozen"),
    "no attrs answer": (working(answer="'Answer'"), "its answer is no attrs class"),
    "a field type": (
        WORKING.replace("    heads: float", "    heads: float\n    type: str = 'coin'"),
        "its answer has a field `type`",
    ),
    "a set": (asking("set[str]"), "its question has a field `Question.instructions` of type set[str]"),
    "a nested set": (asking("dict[str, list[bytes]]"), "`Question.instructions` of type bytes"),
    "a fixed tuple": (asking("tuple[int, int]"), "of type tuple[int, int]"),
    "keys of numbers": (asking("dict[int, str]"), "of type dict[int, str]"),
    "an unknown annotation": (asking("Strng"), "name 'Strng' is not defined"),
    "no function": (working(reduce="None"), "its reduce cannot be called"),
    "an upper-case name": (working(name="'Coin'"), "ValueError: 'name' must match regex"),
    "a name with a line break": (working(name="'coin\\n'"), "ValueError: 'name' must match regex"),
    "a hook without return": (
        WORKING.replace("return [question_type()]", "[question_type()]"),
        "TypeError: openjev_question_types returned None; end it with `return`",
    ),
    "another hook without return": (
        WORKING.replace("openjev_question_types", "openjev_commands").replace("return [question_type()]", "pass"),
        "TypeError: openjev_commands returned None; end it with `return`",
    ),
    "a true version": (working(api="True"), "contract version True; this openjev speaks version 1"),
    "a version with a point": (working(api="1.0"), "contract version 1.0; this openjev speaks version 1"),
    "one label": (working(labels="'Yes'"), "question type 'coin': its labels are 'Yes', which is no tuple; write"),
    "one example": (
        working(examples="Question(instructions='?')"),
        "question type 'coin': its examples are Question(instructions='?'), which is no tuple",
    ),
    "a label with white space": (working(labels="(' Yes',)"), "its label ' Yes' is no text without outer white space"),
    "an example of another kind": (working(examples="('x',)"), "an example is a str; give instances of Question"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_recorded_and_others_load(site, fault):
    source, cause = FAULTS[fault]
    install(site, "openjev-coin", source)
    install(site, "openjev-dice", working(name="'dice'"))
    registry = load_registry()
    entry = entry_of(registry, "openjev-coin")
    assert ("failed", ()) == (entry.status, entry.types)
    assert cause in entry.cause
    assert "\n" not in entry.cause
    assert entry.cause.startswith("openjev_coin: ")
    assert BUILT_IN | {"dice"} == set(registry.types)
    assert (entry,) == registry.failures


def test_the_cause_points_at_the_plugins_own_line(site):
    install(
        site,
        "openjev-coin",
        "import openjev_coin_parts",
        files=[("openjev_coin_parts.py", "x = 1\n\nraise RuntimeError('part\\nmissing')\n")],
    )
    (failure,) = load_registry().failures
    assert "openjev_coin: RuntimeError: part missing (openjev_coin_parts.py:3)" == failure.cause


def test_a_distribution_without_metadata_loads_and_is_unknown(site):
    install(site, "openjev-coin", WORKING)
    next(site.glob("*.dist-info/METADATA")).unlink()
    (entry,) = (entry for entry in load_registry().entries if entry.name == "openjev_coin")
    assert ("unknown", "unknown", "loaded") == (entry.distribution, entry.version, entry.status)


DAMAGED_POINTS = {
    "no UTF-8": b"\xff\xfe[openjev]\n",
    "no entry points": b"[openjev]\nnonsense\n",
}


@pytest.mark.parametrize("damage", DAMAGED_POINTS)
def test_entry_points_that_cannot_be_read_are_a_failure_of_that_distribution(site, damage):
    install(site, "openjev-coin", WORKING)
    install(site, "zz-damaged", WORKING, version="3.0")
    next(site.glob("zz_damaged*/entry_points.txt")).write_bytes(DAMAGED_POINTS[damage])
    registry = load_registry()
    (failure,) = registry.failures
    assert ("unknown", "zz-damaged", "3.0", "failed") == (
        failure.name, failure.distribution, failure.version, failure.status,
    )  # fmt: skip
    assert failure.cause.startswith("entry_points.txt cannot be read: ")
    assert failure.cause.endswith("; reinstall zz-damaged")
    assert BUILT_IN | {"coin"} == set(registry.types)
    assert () == load_registry(["zz_damaged"]).failures


def test_metadata_that_cannot_be_read_is_a_failure_of_that_plugin(site):
    install(site, "openjev-coin", WORKING)
    install(site, "openjev-dice", working(name="'dice'"))
    next(site.glob("openjev_coin*/METADATA")).write_bytes(b"Name: openjev-coin\n\xff\n")
    registry = load_registry()
    (failure,) = registry.failures
    assert ("openjev_coin", "openjev_coin", "1.0") == (failure.name, failure.distribution, failure.version)
    assert failure.cause.startswith("METADATA cannot be read: UnicodeDecodeError")
    assert BUILT_IN | {"dice"} == set(registry.types)
    assert () == load_registry(["openjev-coin"]).failures


def test_an_entry_point_without_a_module(site):
    install(site, "openjev-coin", WORKING)
    next(site.glob("openjev_coin*/entry_points.txt")).write_text("[openjev]\ncoin = \n")
    (failure,) = load_registry().failures
    assert 'the entry point names no module; write `coin = "package.module"`' in failure.cause


def test_a_name_that_disables_nothing_is_a_warning(site):
    install(site, "openjev-coin", WORKING)
    (warning,) = load_registry(["openjev_coin", "openjev-cion"]).warnings
    assert warning.startswith("OPENJEV_DISABLE_PLUGINS: 'openjev-cion' disables nothing; ")
    assert warning.endswith("distributions with plugins: openjev, openjev-coin")


def test_a_summary_that_is_no_text_is_refused(site):
    install(site, "openjev-coin", working(summary="7"))
    (failure,) = load_registry().failures
    assert "'summary' must be <class 'str'>" in failure.cause


def test_a_module_that_is_not_there(site):
    install(site, "openjev-coin", WORKING)
    (site / "openjev_coin.py").unlink()
    (failure,) = load_registry().failures
    assert "No module named 'openjev_coin'" in failure.cause


def test_two_distributions_may_give_their_entry_points_one_name(site):
    install(site, "openjev-coin", WORKING, entry_point="coin")
    install(site, "other-coin", working(name="'other'"), version="9", entry_point="coin")
    registry = load_registry()
    assert BUILT_IN | {"coin", "other"} == set(registry.types)


def test_two_entries_that_load_one_module_are_one(site):
    install(site, "openjev-coin", WORKING, entry_point="coin")
    points = next(site.glob("openjev_coin-*/entry_points.txt"))
    points.write_text(points.read_text() + "again = openjev_coin\n")
    registry = load_registry()
    assert BUILT_IN | {"coin"} == set(registry.types)
    assert ["again"] == [entry.name for entry in registry.entries if entry.distribution == "openjev-coin"]


@pytest.mark.parametrize("folder", ["~penjev-0.0.9.dist-info", "openjev_before-0.0.9.dist-info"])
@pytest.mark.parametrize("metadata", [b"Name: openjev\nVersion: 0.0.9\n", b"\xff", None])
def test_what_an_interrupted_upgrade_leaves_behind_takes_nothing(site, folder, metadata):
    """pip renames what it removes; other tools leave a second folder of the same project."""
    info = site / folder
    info.mkdir()
    (info / "entry_points.txt").write_text("[openjev]\nnoul = openjev_noul\nchoice = openjev_choice\n")
    if metadata is not None:
        (info / "METADATA").write_bytes(metadata)
    registry = load_registry()
    assert BUILT_IN == set(registry.types)
    assert () == registry.failures
    assert {"openjev"} == {registry.distribution_of(name) for name in BUILT_IN}


def test_two_plugins_with_one_type_name(site):
    install(site, "openjev-coin", WORKING)
    install(site, "other-coin", WORKING, version="9")
    registry = load_registry()
    assert BUILT_IN == set(registry.types)
    for failure in registry.failures:
        assert "the question type 'coin' is claimed by openjev-coin 1.0 and other-coin 9" in failure.cause


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_plugin_that_claims_a_built_in_name_does_not_get_it(site, name):
    install(site, "openjev-evil", working(name=repr(name)))
    registry = load_registry()
    assert BUILT_IN == set(registry.types)
    assert "openjev" == registry.distribution_of(name)
    (failure,) = registry.failures
    assert ("openjev-evil", "conflict") == (failure.distribution, failure.status)
    assert f"the question type {name!r} is claimed by openjev 0.1.0 and openjev-evil 1.0" in failure.cause


@pytest.mark.parametrize("name", ["openjev-coin", "openjev_coin", "OpenJev.Coin", "openjev--coin"])
def test_disabled_distributions_are_not_even_imported(site, name):
    install(site, "openjev-coin", "raise RuntimeError('imported')")
    registry = load_registry([name])
    entry = entry_of(registry, "openjev-coin")
    assert ("blocked", "disabled by OPENJEV_DISABLE_PLUGINS") == (entry.status, entry.cause)
    assert () == registry.failures
    assert BUILT_IN == set(registry.types)


def test_with_everything_disabled_nothing_is_installed():
    registry = load_registry(["openjev"])
    assert {} == dict(registry.types)
    assert {"blocked"} == {entry.status for entry in registry.entries}
    assert Registry(()).failures == registry.failures


def test_the_listing_does_not_depend_on_the_order_of_installation(site):
    for name in ("zz-coin", "aa-coin", "mm-coin"):
        install(site, name, working(name=repr(name)))
    found = [entry.distribution for entry in load_registry().entries if entry.distribution != "openjev"]
    assert ["aa-coin", "mm-coin", "zz-coin"] == found


def test_a_registry_of_given_types_is_held_to_the_same_rules():
    types = list(load_registry().types.values())
    assert BUILT_IN == set(registry_of(*types).types)
    with pytest.raises(ValueError, match="have one name"):
        registry_of(types[0], types[0])
    with pytest.raises(ValueError, match="returned a str"):
        registry_of("noul")
