"""The question types and engines that there are, and the outcome of loading each plugin.

pluggy would drop the second of two plugins with one entry-point name without a word, give up the whole load on one
broken import, and let a misspelt hook do nothing. So each plugin is loaded on its own, in a plugin manager of its own,
and what happened to it is recorded.
"""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from types import MappingProxyType
from typing import Any, Literal

import attrs
import pluggy
from attrs import frozen

from openjev_core.engine_type import EngineType
from openjev_core.observation import FinishedEvaluation
from openjev_core.plugins import hookspecs
from openjev_core.plugins.binding import bound
from openjev_core.plugins.commands import checked_commands
from openjev_core.plugins.contract import engine_fault, type_fault
from openjev_core.plugins.declared import Source, declared, file_source, normalised
from openjev_core.plugins.problems import raised
from openjev_core.question import ENGLISH, PromptWords, QuestionType
from openjev_core.settings import Settings

Observer = Callable[[FinishedEvaluation], None]

Status = Literal["loaded", "failed", "conflict", "blocked"]


@frozen(kw_only=True)
class PluginEntry:
    """One plugin and the outcome of loading it.

    Attributes:
        name: The entry point's name, or that of a plugin's file.
        distribution: The distribution that declares it, or the file's path.
        version: The distribution's version; ``file`` for a plugin that is one.
        status: ``loaded``; ``failed`` (see ``cause``); ``conflict`` (another plugin claims the same name);
            ``blocked`` (by ``OPENJEV_DISABLE_PLUGINS``).
        types: The question types that it adds; empty unless loaded.
        engines: The engines that it adds; empty unless loaded.
        observers: Its observers of finished evaluations.
        commands: Command name to function, for ``openjev``.
        cause: One line for a person, unless loaded.
    """

    name: str
    distribution: str
    version: str
    status: Status
    types: tuple[QuestionType[Any, Any], ...] = ()
    engines: tuple[EngineType, ...] = ()
    observers: tuple[Observer, ...] = ()
    commands: Mapping[str, Callable[..., None]] = attrs.field(factory=dict)
    cause: str | None = None


@frozen
class Registry:
    """The installed question types and engines: a value, handed to the engine and the app.

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
    def labels(self) -> tuple[str, ...]:
        """The types' own labels."""
        return tuple(sorted({label for question_type in self.types.values() for label in question_type.labels}))

    @property
    def engines(self) -> Mapping[str, EngineType]:
        """Name to engine, for what is loaded, in the entries' order."""
        loaded = (entry for entry in self.entries if entry.status == "loaded")
        return MappingProxyType({engine.name: engine for entry in loaded for engine in entry.engines})

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

    def configured(self, settings: Settings) -> Registry:
        """The same with the types' own settings in force, and the prompt's fixed words.

        Raises:
            SettingsError: A value of a type's own setting is not accepted.
        """
        words = PromptWords(*settings.prompt_words)

        def of(entry: PluginEntry) -> PluginEntry:
            return attrs.evolve(entry, types=tuple(bound(one, settings.own, words) for one in entry.types))

        return Registry(tuple(map(of, self.entries)), self.warnings)

    def without(self, causes: Mapping[str, str]) -> Registry:
        """The same without some question types, each of which becomes a failure of its own.

        Args:
            causes: Name of a type to why it cannot be served.
        """
        entries: list[PluginEntry] = []
        for entry in self.entries:
            lost = [t.name for t in entry.types if t.name in causes]
            entries.append(attrs.evolve(entry, types=tuple(t for t in entry.types if t.name not in causes)))
            bare = attrs.evolve(entry, status="failed", types=(), engines=(), observers=(), commands={})
            entries.extend(attrs.evolve(bare, name=name, cause=causes[name]) for name in lost)
        return Registry(tuple(entries), self.warnings)

    def distribution_of(self, type_name: str) -> str:
        """The distribution that gives the loaded type ``type_name``; ``KeyError`` when there is none."""
        return {t.name: entry.distribution for entry in self.entries for t in entry.types}[type_name]


def load_registry(disabled: Collection[str] = (), files: Sequence[str] = ()) -> Registry:
    """Load every plugin that installed distributions declare.

    Args:
        disabled: Names of distributions whose plugins are not loaded.
        files: Paths of further plugins, each a Python file.
    """
    return registry_from([*declared(hookspecs.PROJECT), *map(file_source, files)], disabled)


def registry_of(*types: QuestionType[Any, Any]) -> Registry:
    """A registry of these types alone, for tests and for scripts that define a type themselves.

    Raises:
        ValueError: A type breaks the contract, or two share a name.
    """
    accepted = checked_types([types])
    entry = PluginEntry(name="direct", distribution="direct", version="0", status="loaded", types=accepted)
    return Registry((entry,))


def registry_from(found: Iterable[Source], disabled: Collection[str] = ()) -> Registry:
    """Load these plugins; see :func:`load_registry`."""
    blocked = {normalised(name) for name in disabled}
    entries: list[PluginEntry] = []
    loaded = set()
    for source in sorted(found, key=source_order):
        if normalised(source.distribution) in blocked:
            entries.append(blocked_entry(source))
        elif source.target is None or source.target not in loaded:
            # The same module twice is one plugin: an interrupted upgrade leaves the metadata of the release before.
            loaded.add(source.target)
            entries.append(load_entry(source))
    entries = mark_conflicts(entries, lambda entry: [t.name for t in entry.types], "question type")
    entries = mark_conflicts(entries, lambda entry: [e.name for e in entry.engines], "engine")
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


def is_own(distribution: str) -> bool:
    """Whether a distribution is openjev itself."""
    return normalised(distribution) == hookspecs.PROJECT


def source_order(source: Source) -> tuple[Any, ...]:
    """The project's own first, then by name, so that a listing does not depend on installation order."""
    return not is_own(source.distribution), source.fault is not None, source.distribution, source.name


def blocked_entry(source: Source) -> PluginEntry:
    """The entry of a plugin that is disabled."""
    cause = "disabled by OPENJEV_DISABLE_PLUGINS"
    return PluginEntry(
        name=source.name, distribution=source.distribution, version=source.version, status="blocked", cause=cause
    )


def load_entry(source: Source) -> PluginEntry:
    """Load one plugin. Whatever goes wrong becomes its status and cause.

    What it prints goes to standard error: standard output is the command's, which may print JSON.
    """
    entry = attrs.evolve(blocked_entry(source), status="failed", cause=source.fault)
    if source.fault is not None:
        return entry
    try:
        with redirect_stdout(sys.stderr):
            contributed = contributions_of(source.load())
    except KeyboardInterrupt:  # a person's, who wants the program to end
        raise
    except BaseException as error:  # noqa: BLE001 - also a SystemExit: a plugin may raise anything; it is recorded and shown
        return attrs.evolve(entry, cause=f"{source.target}: {raised(error)}")
    return attrs.evolve(entry, status="loaded", cause=None, **contributed)


def contributions_of(plugin: object) -> dict[str, Any]:
    """What a plugin module's hooks give, by the name of the :class:`PluginEntry` field that holds it.

    Raises:
        ValueError: No hook is implemented, one is misspelt, or what it returns breaks the contract.
        TypeError: A hook returns something of another kind.
        Exception: Whatever the hook itself raises.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = ", ".join(
            f"{name}{inspect.signature(hook)}".partition(" ->")[0]
            for name, hook in vars(hookspecs).items()
            if name.startswith("openjev_")
        )
        raise ValueError(f"{str(error).partition(' in plugin ')[0]}; the hooks are {hooks}") from None
    implemented = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    if not implemented:
        raise ValueError("no hook found: define `openjev_question_types` and decorate it with `openjev_core.hookimpl`")

    def returned(hook: pluggy.HookCaller) -> list[Any]:
        results: list[Any] = hook()
        if hook.name in implemented and not results:  # pluggy leaves out what returns nothing
            raise TypeError(f"{hook.name} returned None; end it with `return`")
        return results

    finished = manager.hook.openjev_evaluation_finished
    return {
        "types": checked_types(returned(manager.hook.openjev_question_types)),
        "engines": checked_engines(returned(manager.hook.openjev_engines)),
        "observers": (lambda evaluation: finished(finished=evaluation),) if finished.name in implemented else (),
        "commands": checked_commands(returned(manager.hook.openjev_commands)),
    }


def checked_types(returned: Iterable[object]) -> tuple[QuestionType[Any, Any], ...]:
    """Question types as one list, each checked against the contract.

    Args:
        returned: Lists of types, as a plugin's hooks return them. Their own settings have their defaults.

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
        raise ValueError(f"two question types have one name: {', '.join(sorted(names))}; give each a name of its own")
    return tuple(bound(one, {}, ENGLISH) if one.own is None else one for one in types)


def checked_engines(returned: Iterable[object]) -> tuple[EngineType, ...]:
    """Engines as one list, each checked against the contract.

    Args:
        returned: Lists of engines, as a plugin's hooks return them.

    Raises:
        TypeError: A member is no list.
        ValueError: An engine breaks the contract, or two engines have one name.
    """
    engines: list[EngineType] = []
    for result in returned:
        if not isinstance(result, Sequence):
            raise TypeError(f"openjev_engines returned {type(result).__name__}; return a list of EngineType")
        engines.extend(result)
    for engine in engines:
        if fault := engine_fault(engine):
            raise ValueError(fault)
    names = [engine.name for engine in engines]
    if len(set(names)) != len(names):
        raise ValueError(f"two engines have one name: {', '.join(sorted(names))}; give each a name of its own")
    return tuple(engines)


def mark_conflicts(
    entries: list[PluginEntry], claims: Callable[[PluginEntry], Iterable[str]], what: str
) -> list[PluginEntry]:
    """Turn loaded entries that claim one name into conflicts that name every claimant. openjev's own keep theirs."""
    claimants: defaultdict[str, list[PluginEntry]] = defaultdict(list)
    for entry in entries:
        if entry.status == "loaded":
            for claim in claims(entry):
                claimants[claim].append(entry)
    marked = []
    for entry in entries:
        clash = next((c for c in claims(entry) if len(claimants[c]) > 1), None) if entry.status == "loaded" else None
        if clash is None or is_own(entry.distribution):
            marked.append(entry)
            continue
        owners = " and ".join(f"{e.distribution} {e.version}" for e in claimants[clash])
        cause = f"the {what} {clash!r} is claimed by {owners}; uninstall or disable all but one"
        bare = attrs.evolve(entry, status="conflict", types=(), engines=(), observers=(), commands={})
        marked.append(attrs.evolve(bare, cause=cause))
    return marked
