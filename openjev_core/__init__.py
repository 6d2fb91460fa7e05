"""openjev: typed questions about a state, answered with probabilities read from a model's first output token.

What stands here is public: the plugin contract, the engine for library use, and the errors. Each name is imported when
it is first used: the command line starts without the engine, and a plugin loads the contract alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openjev_core import setting_values
    from openjev_core.address import Address
    from openjev_core.asking import Asking
    from openjev_core.backends.protocol import Backend, ChatTemplate, LoadedModel, Tokenizer
    from openjev_core.engine.engine import Engine
    from openjev_core.engine.evaluation import Evaluation
    from openjev_core.engine.opening import open_engine
    from openjev_core.engine.sync import SyncEngine
    from openjev_core.engine_type import EngineStart, EngineType
    from openjev_core.errors import (
        AtCapacity,
        BackendError,
        BackendUnavailable,
        InvalidQuestion,
        OpenJevError,
        PluginError,
        RequestError,
        SettingsError,
        StartupError,
    )
    from openjev_core.limits import Limits
    from openjev_core.observation import FinishedEvaluation
    from openjev_core.plugins.hookspecs import hookimpl
    from openjev_core.plugins.registry import Registry, load_registry, registry_of
    from openjev_core.plugins.structuring import QuestionConverter
    from openjev_core.prompts.model import prompt_model
    from openjev_core.question import (
        CONTRACT_VERSION,
        Content,
        Distribution,
        Option,
        PromptWords,
        QuestionType,
        Readout,
        Rounds,
        content_text,
        question_text,
        standard_suffix,
    )
    from openjev_core.reader import (
        Model,
        OrderReading,
        PlannedReadout,
        PreparedQuestion,
        PreparedReadout,
        Reader,
        Session,
        Usage,
    )
    from openjev_core.settings import Settings, load_settings, setting

__all__ = [
    "CONTRACT_VERSION",
    "Address",
    "Asking",
    "AtCapacity",
    "Backend",
    "BackendError",
    "BackendUnavailable",
    "ChatTemplate",
    "Content",
    "Distribution",
    "Engine",
    "EngineStart",
    "EngineType",
    "Evaluation",
    "FinishedEvaluation",
    "InvalidQuestion",
    "Limits",
    "LoadedModel",
    "Model",
    "OpenJevError",
    "Option",
    "OrderReading",
    "PlannedReadout",
    "PluginError",
    "PreparedQuestion",
    "PreparedReadout",
    "PromptWords",
    "QuestionConverter",
    "QuestionType",
    "Reader",
    "Readout",
    "Registry",
    "RequestError",
    "Rounds",
    "Session",
    "Settings",
    "SettingsError",
    "StartupError",
    "SyncEngine",
    "Tokenizer",
    "Usage",
    "content_text",
    "hookimpl",
    "load_registry",
    "load_settings",
    "open_engine",
    "prompt_model",
    "question_text",
    "registry_of",
    "setting",
    "setting_values",
    "standard_suffix",
]

_ON_FIRST_USE = {
    "Address": "address",
    "Asking": "asking",
    "AtCapacity": "errors",
    "Backend": "backends.protocol",
    "BackendError": "errors",
    "BackendUnavailable": "errors",
    "CONTRACT_VERSION": "question",
    "ChatTemplate": "backends.protocol",
    "Content": "question",
    "Distribution": "question",
    "Engine": "engine.engine",
    "EngineStart": "engine_type",
    "EngineType": "engine_type",
    "Evaluation": "engine.evaluation",
    "FinishedEvaluation": "observation",
    "InvalidQuestion": "errors",
    "Limits": "limits",
    "LoadedModel": "backends.protocol",
    "Model": "reader",
    "OpenJevError": "errors",
    "Option": "question",
    "OrderReading": "reader",
    "PlannedReadout": "reader",
    "PluginError": "errors",
    "PreparedQuestion": "reader",
    "PreparedReadout": "reader",
    "PromptWords": "question",
    "QuestionConverter": "plugins.structuring",
    "QuestionType": "question",
    "Reader": "reader",
    "Readout": "question",
    "Registry": "plugins.registry",
    "RequestError": "errors",
    "Rounds": "question",
    "Session": "reader",
    "Settings": "settings",
    "SettingsError": "errors",
    "StartupError": "errors",
    "SyncEngine": "engine.sync",
    "Tokenizer": "backends.protocol",
    "Usage": "reader",
    "content_text": "question",
    "hookimpl": "plugins.hookspecs",
    "load_registry": "plugins.registry",
    "load_settings": "settings",
    "open_engine": "engine.opening",
    "prompt_model": "prompts.model",
    "question_text": "question",
    "registry_of": "plugins.registry",
    "setting": "settings",
    "setting_values": "setting_values",
    "standard_suffix": "question",
}


if not TYPE_CHECKING:  # a type checker would take any name to exist

    def __getattr__(name: str) -> Any:
        if name not in _ON_FIRST_USE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - the whole point of this function

        module = import_module(f"{__name__}.{_ON_FIRST_USE[name]}")
        value = module if name == _ON_FIRST_USE[name] else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
