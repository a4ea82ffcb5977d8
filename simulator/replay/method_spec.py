"""Methods as they are written on a command line: ``percentile:key=user,percentile=90``."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from predictors.base import Predictor
from predictors.methods.forest import Forest
from predictors.registry import METHODS, UnknownMethodError, create
from terminal.exit_codes import ExitCode

WITHOUT_PROJECTS = {"percentile": "percentile:key=user+walltime"}
"""Specs of methods whose default needs a project, which SWF logs do not have."""


def usual_methods() -> list[str]:
    """Return the specs of methods for a log without projects, but of forest: rounds teach it."""
    return [WITHOUT_PROJECTS.get(name, name) for name in METHODS if name != Forest.name]


SYNONYMS = {"threshold": "lower_bound"}
"""Parameters by their names in a paper."""

_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
_MONTHS = re.compile(r"(\d+)M")


class MethodSpecError(ValueError):
    """A method spec is malformed, or has an unknown or impossible parameter."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method with parameters of its own.

    Attributes:
        label: the spec as it was written; names the method in tables.
        name: name of the method, as in the API.
        parameters: parameters that differ from the defaults.
    """

    label: str
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``name`` or ``name:parameter=value,parameter=value``.

        A value is a number, true, false or null; anything else is text. ``all`` and ``none`` are
        null. Tang et al.'s words are understood: ``p85`` is the 85th percentile, ``1M`` to ``12M``
        are months in days, and ``threshold`` is ``lower_bound``.

        Raises:
            MethodSpecError: a parameter has no value.
        """
        name, _, rest = text.partition(":")
        parameters = {}
        for pair in rest.split(",") if rest else ():
            key, equals, value = pair.partition("=")
            if not (key and equals and value):
                raise MethodSpecError(f"{pair!r} in {text!r} is not of the form parameter=value.")
            parameters[SYNONYMS.get(key, key)] = _value(value)
        return cls(text, name, parameters)

    def predictor(self) -> Predictor:
        """Create a predictor without any history.

        Raises:
            UnknownMethodError: there is no such method.
            MethodSpecError: a parameter is unknown or out of range, or rounds teach the method.
        """
        if self.name == Forest.name:
            raise MethodSpecError("forest is taught by rounds: use auto.")
        try:
            return create(self.name, **self.parameters)
        except UnknownMethodError:
            raise
        except ValueError as error:
            raise MethodSpecError(f"{self.label}: {error}") from error


def _value(text: str) -> Any:
    if text in {"all", "none"}:
        return None
    if match := _PERCENTILE.fullmatch(text):
        return float(match[1])
    if match := _MONTHS.fullmatch(text):
        years, months = divmod(int(match[1]), 12)
        return 365 * years + 30 * months
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
