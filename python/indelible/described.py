"""What the class of a design says of it, and the mistakes that such a class may have."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from indelible.design import Design, InputError, Param

#: The possible values of a class's attributes, by name.
WORDS = {
    "durability": ("synchronous", "asynchronous", "none"),
    "granularity": ("word", "line"),
    "needs": ("nothing", "adr", "eadr"),
    "model": (None, "fenced", "epoch", "visible"),
}

#: The attributes that are a text, and those that are a mapping from names.
TEXTS = ("paper", "family")
MAPPINGS = ("params", "rules", "needless")

#: The attributes that are True or False.
FLAGS = ("brings_stores", "has_fences", "has_flushes", "migrates")

ATTRIBUTES = (*WORDS, *TEXTS, *MAPPINGS, *FLAGS)

#: The hooks that the simulator calls only if a design overrides them.
HOOKS = (
    *("begin", "load", "store", "commit", "fill", "transfer", "evict", "event"),
    *("leaves_behind", "hears_at_once", "invariants", "power_loss", "recover", "boot"),
    *("counters", "fence", "could_be_durable"),
)

#: Those of the hooks that only ordering hardware has, and those that it does not have.
OF_ORDERS = ("fence", "could_be_durable")
OF_DESIGNS = ("begin", "commit", "leaves_behind")

#: The least similarity of a misspelt name (ours: `stor`, `evcit`, `on_store`).
LIKELY = 0.75


def description(design: type[Design], name: str) -> dict[str, Any]:
    """Return what a class says of its design, or refuse a class with wrong attributes."""
    _require_attributes(design, name)
    for word, known in WORDS.items():
        _one_of(name, word, getattr(design, word), known)
    for word in TEXTS:
        _text(name, word, getattr(design, word))
    for word in MAPPINGS:
        said = getattr(design, word)
        if not isinstance(said, Mapping):
            raise InputError(f"{name}: `{word}` must be a mapping from names, not {said!r}")
        for key, value in said.items():
            # A key of `needless` may name the log before a colon.
            bare = key.rpartition(":")[2] if word == "needless" and isinstance(key, str) else key
            if not isinstance(bare, str) or not bare.isidentifier():
                raise InputError(f"{name}: a key of `{word}` must be an identifier, not {key!r}")
            if word != "params":
                _text(name, f"{word}[{key!r}]", value)
    for rule in design.needless:
        # The rules of logs are known only to the simulator, which checks them later.
        if design.model is None and rule not in design.rules:
            raise InputError(f"{name}: `needless` names `{rule}`, which is not in `rules`")
    for word in FLAGS:
        value = getattr(design, word)
        if not isinstance(value, bool):
            raise InputError(f"{name}: `{word}` must be True or False, not {value!r}")
    _require_hooks(design, name)
    _require_class_methods(design, name)
    _require_kind(design, name)
    lines = (design.__doc__ or "").strip().splitlines()
    return {
        "name": name,
        "paper": design.paper,
        "family": design.family,
        "summary": lines[0].rstrip(".") if lines else design.__name__,
        "file": _file(design) or name,
        **{word: getattr(design, word) for word in WORDS},
        "fields": [_field(name, key, param) for key, param in design.params.items()],
        "rules": list(design.rules.items()),
        "needless": list(design.needless.items()),
        "hooks": [hook for hook in HOOKS if _changes(design, hook)],
        **{word: getattr(design, word) for word in FLAGS},
    }


def _file(design: type[Design]) -> str | None:
    """Return the file of a design; one that was typed, as in a notebook, has none."""
    try:
        return inspect.getsourcefile(design)
    except (OSError, TypeError):
        return None


def _text(name: str, word: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name}: `{word}` must be a string, not {value!r}")


def _require_attributes(design: type[Design], name: str) -> None:
    """Refuse misspelt attributes, without which the design would be held to another promise.

    A value of its own that a class keeps may have a similar name, if the class also has the
    attribute, or if the attribute could not have that value.
    """
    for base in (base for base in design.__mro__ if base not in Design.__mro__):
        missing = [known for known in ATTRIBUTES if known not in vars(base)]
        for word, value in vars(base).items():
            if not word.startswith("_") and not hasattr(Design, word):
                likely = [known for known in missing if _could_be(known, value)]
                _require_spelling(name, "attribute", word, likely)


def _could_be(word: str, value: object) -> bool:
    """Return whether an attribute can have a value."""
    if word in WORDS:
        return isinstance(value, str) and value in WORDS[word]
    if word in TEXTS:
        return isinstance(value, str)
    return isinstance(value, Mapping if word in MAPPINGS else bool)


def _require_spelling(name: str, what: str, word: str, likely: Sequence[str]) -> None:
    """Refuse a name that is nearly that of an attribute or a hook which the class does not have."""
    if meant := difflib.get_close_matches(word, likely, 1, LIKELY):
        raise InputError(
            f"{name}: there is no {what} `{word}`; did you mean `{meant[0]}`? If not, choose"
            f" another name, such as `_{word}`"
        )


def _require_hooks(design: type[Design], name: str) -> None:
    """Refuse misspelt hooks, which the simulator would silently never call.

    A method may have a similar name if its class also has the hook, or inherits the method.
    """
    known = set(dir(Design))
    for base in (base for base in reversed(design.__mro__) if base not in Design.__mro__):
        missing = [hook for hook in (*HOOKS, "hardware") if hook not in vars(base)]
        for word in sorted({*vars(base)} - known):
            if not word.startswith("_") and callable(getattr(base, word)):
                _require_spelling(name, "hook", word, missing)
        known |= {*vars(base)}
    for hook in HOOKS:
        own = getattr(design, hook)
        if hook != "could_be_durable" and inspect.isgeneratorfunction(own):
            raise InputError(f"{name}: `{hook}` must answer with `return`, not with `yield`")
        if inspect.iscoroutinefunction(own) or inspect.isasyncgenfunction(own):
            raise InputError(f"{name}: `{hook}` must be a plain function; leave out `async`")


def _require_class_methods(design: type[Design], name: str) -> None:
    """Refuse instance methods for hooks that are called on the class, before an object exists."""
    for hook in ("recover", "boot", "hardware"):
        given = len(inspect.signature(getattr(Design, hook)).parameters)
        own = inspect.getattr_static(design, hook)
        if inspect.isfunction(own) and len(inspect.signature(own).parameters) == 1 + given:
            raise InputError(
                f"{name}: `{hook}` is called on the class, before there is an object: make it a"
                f" `@classmethod`, `def {hook}(cls, ...)`"
            )


def _require_kind(design: type[Design], name: str) -> None:
    """Refuse hooks that are never called on this kind: some are for ordering hardware alone."""
    if design.model is None:
        hook = next((hook for hook in OF_ORDERS if _changes(design, hook)), None)
        if hook:
            raise InputError(
                f"{name}: `{hook}` is called only on ordering hardware, a class with a `model`;"
                " remove it"
            )
        return
    if hook := next((hook for hook in OF_DESIGNS if _changes(design, hook)), None):
        raise InputError(
            f"{name}: `{hook}` is never called on ordering hardware, whose log has the"
            " transactions; remove it"
        )


def _changes(design: type[Design], hook: str) -> bool:
    return inspect.getattr_static(design, hook) is not inspect.getattr_static(Design, hook)


def _one_of(name: str, word: str, value: object, known: Iterable[str | None]) -> None:
    if value not in [*known]:
        words = ", ".join(filter(None, known))
        raise InputError(f"{name}: `{word}` must be one of {words}, not {value!r}")


def _field(name: str, key: str, param: Param) -> dict[str, Any]:
    """Return a parameter as the simulator takes it: a choice is the index of its word."""
    if not isinstance(param, Param):
        raise InputError(f"{name}: `{key}` of `params` must be a `Param`, not {param!r}")
    _text(name, f"the doc of {key}", param.doc)
    if not isinstance(param.tight, Sequence) or (param.choices and param.tight):
        raise InputError(
            f"{name}: `tight` of `{key}` must be a list of numbers, and empty if it has choices"
        )
    field: dict[str, Any] = {"name": key, "doc": param.doc, "tight": list(param.tight)}
    if param.choices:
        for choice in param.choices:
            _text(name, f"a choice of {key}", choice)
        _one_of(name, key, param.default, param.choices)
        choices = list(param.choices)
        default = choices.index(str(param.default))
        limits = {"default": default, "least": 0, "most": len(choices) - 1}
        return field | limits | {"choices": choices}
    numbers = (param.default, param.least, param.most, *param.tight)
    if not all(map(_is_whole, numbers)):
        raise InputError(
            f"{name}: the numbers of `{key}` must be whole, from 0 up, not {numbers!r}"
        )
    span = f"{param.least} to {param.most}"
    said = [
        ("the default of", "is", int(param.default)),
        *(("`tight` of", "has", n) for n in param.tight),
    ]
    for what, verb, number in said:
        if not param.least <= number <= param.most:
            raise InputError(f"{name}: {what} `{key}` {verb} {number}; it must be {span}")
    limits = {"default": int(param.default), "least": param.least, "most": param.most}
    return field | limits | {"choices": []}


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63
