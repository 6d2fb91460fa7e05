"""The installed question types, and the outcome of loading each plugin.

pluggy would drop the second of two plugins with one entry-point name without a word, give up the whole load on one
broken import, and let a misspelt hook do nothing. So each entry point is loaded on its own, in a plugin manager of its
own, and what happened to it is recorded.
"""

from __future__ import annotations

import importlib
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import attr
import attrs
import pluggy
from attrs import frozen

from openjev_core.observation import FinishedEvaluation
from openjev_core.plugins import hookspecs
from openjev_core.plugins.contract import type_fault
from openjev_core.plugins.declared import Unreadable, declared, identity_of, normalised
from openjev_core.plugins.problems import complaint_of
from openjev_core.question import QuestionType

Observer = Callable[[FinishedEvaluation], None]
MACHINERY = (
    "<frozen importlib",
    "<attrs generated",
    *(str(Path(path).parent) for path in (importlib.__file__, pluggy.__file__, attr.__file__, __file__)),
)
"""Path prefixes of frames that are left out of a failure's traceback, because they are not the plugin's own."""

Status = Literal["loaded", "failed", "conflict", "blocked"]


@frozen(kw_only=True)
class PluginEntry:
    """One entry point and the outcome of loading it.

    Attributes:
        name: The entry point's name.
        distribution: The distribution that declares it.
        version: The distribution's version.
        status: ``loaded``; ``failed`` (see ``cause``); ``conflict`` (another plugin claims the same name);
            ``blocked`` (by ``OPENJEV_DISABLE_PLUGINS``).
        types: The question types that it adds; empty unless loaded.
        observers: Its observers of finished evaluations.
        commands: Command name to function, for ``openjev``.
        cause: One line for a person, unless loaded.
    """

    name: str
    distribution: str
    version: str
    status: Status
    types: tuple[QuestionType[Any, Any], ...] = ()
    observers: tuple[Observer, ...] = ()
    commands: Mapping[str, Callable[..., None]] = attrs.field(factory=dict)
    cause: str | None = None


@frozen
class Registry:
    """The installed question types: a value, handed to the engine and the app.

    Attributes:
        entries: Every plugin and what became of it.
        warnings: One line for each disabled name that belongs to no distribution with plugins.
    """

    entries: tuple[PluginEntry, ...]
    warnings: tuple[str, ...] = ()

    @property
    def types(self) -> Mapping[str, QuestionType[Any, Any]]:
        """Wire name to question type, for what is loaded, in the entries' order."""
        return MappingProxyType({t.name: t for entry in self.entries if entry.status == "loaded" for t in entry.types})

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The observers of everything that is loaded."""
        return tuple(observer for entry in self.entries if entry.status == "loaded" for observer in entry.observers)

    @property
    def commands(self) -> Mapping[str, Callable[..., None]]:
        """The commands of everything that is loaded."""
        loaded = (entry for entry in self.entries if entry.status == "loaded")
        return MappingProxyType({name: command for entry in loaded for name, command in entry.commands.items()})

    @property
    def failures(self) -> tuple[PluginEntry, ...]:
        """The entries that failed or conflict with another."""
        return tuple(entry for entry in self.entries if entry.status in ("failed", "conflict"))

    def distribution_of(self, type_name: str) -> str:
        """The distribution that gives the loaded type ``type_name``; ``KeyError`` when there is none."""
        return {t.name: entry.distribution for entry in self.entries for t in entry.types}[type_name]


def load_registry(disabled: Collection[str] = ()) -> Registry:
    """Load every plugin that installed distributions declare.

    Args:
        disabled: Names of distributions whose plugins are not loaded.
    """
    return registry_from(declared(hookspecs.PROJECT), disabled)


def registry_of(*types: QuestionType[Any, Any]) -> Registry:
    """A registry of these types alone, for tests and for scripts that define a type themselves.

    Raises:
        ValueError: A type breaks the contract, or two share a name.
    """
    accepted = checked_types([types])
    entry = PluginEntry(name="direct", distribution="direct", version="0", status="loaded", types=accepted)
    return Registry((entry,))


def registry_from(found: Iterable[EntryPoint | Unreadable], disabled: Collection[str] = ()) -> Registry:
    """Load these entry points; see :func:`load_registry`."""
    blocked = {normalised(name) for name in disabled}
    entries = [
        unreadable_entry(one, blocked) if isinstance(one, Unreadable) else load_entry(one, blocked)
        for one in sorted(found, key=entry_order)
    ]
    entries = mark_conflicts(entries, lambda entry: [entry.name], "entry-point name")
    entries = mark_conflicts(entries, lambda entry: [t.name for t in entry.types], "question type")
    entries = mark_conflicts(entries, lambda entry: entry.commands, "command")
    return Registry(tuple(entries), idle_names(disabled, entries))


def idle_names(disabled: Iterable[str], entries: Iterable[PluginEntry]) -> tuple[str, ...]:
    """A warning for each name that disables nothing: a misspelt one must not leave its plugin running in silence."""
    names = sorted({entry.distribution for entry in entries})
    known = {normalised(name) for name in names}
    return tuple(
        f"OPENJEV_DISABLE_PLUGINS: {name!r} disables nothing; distributions with plugins: {', '.join(names) or 'none'}"
        for name in disabled
        if normalised(name) not in known
    )


def entry_order(found: EntryPoint | Unreadable) -> tuple[bool, str, str]:
    """The project's own first, then by name, so that a listing does not depend on installation order."""
    if isinstance(found, Unreadable):
        return True, found.identity.name, ""
    distribution = identity_of(found.dist).name
    return normalised(distribution) != hookspecs.PROJECT, distribution, found.name


def blocked_entry(name: str, distribution: str, version: str) -> PluginEntry:
    """The entry of a plugin that is disabled."""
    return PluginEntry(
        name=name,
        distribution=distribution,
        version=version,
        status="blocked",
        cause="disabled by OPENJEV_DISABLE_PLUGINS",
    )


def unreadable_entry(found: Unreadable, blocked: Collection[str]) -> PluginEntry:
    """The entry of a distribution whose entry points cannot be read."""
    entry = blocked_entry("unknown", found.identity.name, found.identity.version)
    if normalised(found.identity.name) in blocked:
        return entry
    return attrs.evolve(entry, status="failed", cause=found.fault)


def load_entry(point: EntryPoint, blocked: Collection[str]) -> PluginEntry:
    """Load one entry point. Whatever goes wrong becomes its status and cause."""
    distribution = identity_of(point.dist)
    entry = blocked_entry(point.name, distribution.name, distribution.version)
    if normalised(distribution.name) in blocked:
        return entry
    if distribution.fault:
        return attrs.evolve(entry, status="failed", cause=f"{distribution.fault}; reinstall {distribution.name}")
    try:
        contributed = contributions_of(loaded(point))
    except KeyboardInterrupt:  # a person's, who wants the program to end
        raise
    except BaseException as error:  # noqa: BLE001 - also a SystemExit: a plugin may raise anything; it is recorded and shown
        return attrs.evolve(entry, status="failed", cause=describe(error, point))
    return attrs.evolve(entry, status="loaded", cause=None, **contributed)


def loaded(point: EntryPoint) -> object:
    """Import the object that an entry point names.

    Raises:
        ValueError: It names nothing.
        BaseException: Whatever the import raises.
    """
    if not point.pattern.match(point.value):
        raise ValueError('the entry point names no module; write `name = "package.module"`')
    return point.load()


def describe(error: BaseException, point: EntryPoint) -> str:
    """One line on why a plugin did not load: its kind, its words, and the plugin's own line that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(MACHINERY)]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{point.value}: {type(error).__name__}: {complaint_of(error) or 'no message'}{where}"


def contributions_of(plugin: object) -> dict[str, Any]:
    """What a plugin module's hooks give, by the name of the :class:`PluginEntry` field that holds it.

    Raises:
        ValueError: No hook is implemented, one is misspelt, or what it returns breaks the contract.
        TypeError: A hook returns something of another kind.
        Exception: Whatever the hook itself raises.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    manager.check_pending()
    implemented = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    if not implemented:
        raise ValueError("no hook found: define `openjev_question_types` and decorate it with `openjev_core.hookimpl`")
    hook = manager.hook.openjev_evaluation_finished
    return {
        "types": checked_types(manager.hook.openjev_question_types()),
        "observers": (lambda finished: hook(finished=finished),) if hook.name in implemented else (),
        "commands": checked_commands(manager.hook.openjev_commands()),
    }


def checked_commands(returned: Iterable[object]) -> dict[str, Callable[..., None]]:
    """The commands of one plugin.

    Raises:
        TypeError: The hook returned something else than names and functions.
        ValueError: A name is that of one of openjev's own commands.
    """
    commands: dict[str, Callable[..., None]] = {}
    for result in returned:
        if not isinstance(result, Mapping):
            raise TypeError(f"openjev_commands returned {type(result).__name__}; return a dict of name to function")
        for name, function in result.items():
            if not isinstance(name, str) or not callable(function):
                maps = f"{name!r} to {type(function).__name__}"
                raise TypeError(f"openjev_commands returned a dict that maps {maps}; return a dict of name to function")
            if name in hookspecs.OWN_COMMANDS:
                raise ValueError(f"the command {name!r} is one of openjev's own; choose another name")
            commands[name] = function
    return commands


def checked_types(returned: Iterable[object]) -> tuple[QuestionType[Any, Any], ...]:
    """Question types as one list, each checked against the contract.

    Args:
        returned: Lists of types, as a plugin's hooks return them.

    Raises:
        TypeError: A member is no list.
        ValueError: A type breaks the contract, or two types have one name.
    """
    types: list[QuestionType[Any, Any]] = []
    for result in returned:
        if not isinstance(result, Sequence):
            raise TypeError(f"openjev_question_types returned {type(result).__name__}; return a list of QuestionType")
        types.extend(result)
    for question_type in types:
        if fault := type_fault(question_type):
            raise ValueError(fault)
    names = [t.name for t in types]
    if len(set(names)) != len(names):
        raise ValueError(f"two question types have one name: {', '.join(sorted(names))}")
    return tuple(types)


def mark_conflicts(
    entries: list[PluginEntry], claims: Callable[[PluginEntry], Iterable[str]], what: str
) -> list[PluginEntry]:
    """Turn loaded entries that claim one name into conflicts that name every claimant."""
    claimants: defaultdict[str, list[PluginEntry]] = defaultdict(list)
    for entry in entries:
        if entry.status == "loaded":
            for claim in claims(entry):
                claimants[claim].append(entry)
    marked = []
    for entry in entries:
        clash = next((c for c in claims(entry) if len(claimants[c]) > 1), None) if entry.status == "loaded" else None
        if clash is not None:
            owners = " and ".join(f"{e.distribution} {e.version}" for e in claimants[clash])
            cause = f"the {what} {clash!r} is claimed by {owners}; uninstall or disable all but one"
            entry = attrs.evolve(entry, status="conflict", types=(), observers=(), commands={}, cause=cause)  # noqa: PLW2901 - the marked entry
        marked.append(entry)
    return marked
