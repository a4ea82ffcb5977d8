"""Methods of users: any class with ``predict`` and ``observe``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol, cast

from predictors.base import COLD_START, Memory, Predictor, capped
from predictors.jobs import Basis, Completion, Prediction, Submission
from simulator.replay.method_spec import MethodSpec


class Method(Protocol):
    """A method of a user, in the two verbs of every predictor."""

    def predict(self, job: Submission) -> "float | Prediction":
        """Return the runtime of a job that was just submitted, in seconds."""
        ...

    def observe(self, run: Completion) -> None:
        """Learn from a run that has ended."""
        ...


MakeMethod = Callable[[], Method]
"""A class, or another function without arguments, that makes a method without any history."""

Methods = Iterable[str | MakeMethod] | Mapping[str, str | MakeMethod]
"""Specs such as ``max-usage`` or ``max-usage:window=10``, and classes; by label if a mapping."""


class AnswerError(ValueError):
    """A method of a user answered no number of seconds."""


class OwnMethod:
    """A method of a user as a predictor: seconds are limited to those of the request.

    Attributes:
        method: as the user wrote it.
    """

    parameters: Mapping[str, Any] = {}
    memory = Memory(window_seconds=float("inf"))

    def __init__(self, name: str, method: Method) -> None:
        self.name = name
        self.method = method
        self._observed = 0

    def predict(self, submission: Submission) -> Prediction:
        """Return the answer of the method as a prediction.

        Raises:
            AnswerError: it is no finite number.
        """
        answer = self.method.predict(submission)
        if isinstance(answer, Prediction):
            return answer
        basis = Basis(jobs=self._observed, reason="history") if self._observed else COLD_START
        return capped(self._seconds(answer), submission, method=self.name, basis=basis)

    def observe(self, completion: Completion) -> None:
        """Let the method learn from a run."""
        self.method.observe(completion)
        self._observed += 1

    def _seconds(self, answer: Any) -> float:
        try:
            seconds = float("nan") if isinstance(answer, str | bytes) else float(answer)
        except (TypeError, ValueError):
            seconds = float("nan")
        if not isfinite(seconds):
            raise AnswerError(f"{self.name} predicted {answer!r}, which is no number of seconds.")
        return seconds


@dataclass(frozen=True, slots=True)
class OwnSpec(MethodSpec):
    """A class of a user with its label.

    Attributes:
        make: the class.
    """

    make: MakeMethod = field(kw_only=True)

    def predictor(self) -> Predictor:
        """Make a method without any history.

        Raises:
            TypeError: it has not both verbs.
        """
        made = self.make()
        if isinstance(made, Predictor):
            return made
        for verb in ("predict", "observe"):
            if not callable(getattr(made, verb, None)):
                raise TypeError(f"{self.label} has no method {verb}.")
        return cast("Predictor", OwnMethod(self.label, made))


def specs_of(methods: str | MakeMethod | Methods) -> list[MethodSpec]:
    """Return methods with their labels.

    Raises:
        TypeError: a method is neither a spec nor makes one, as an instance.
        ValueError: two methods have one label, or there is none.
    """
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        methods = [methods]
    labelled = (
        methods.items() if isinstance(methods, Mapping) else ((None, each) for each in methods)
    )
    specs = [spec_of(method, label) for label, method in labelled]
    labels = [spec.label for spec in specs]
    if len(set(labels)) < len(labels):
        raise ValueError(f"Two methods have one label: {', '.join(labels)}; give a mapping.")
    if not specs:
        raise ValueError("Name a method.")
    return specs


def spec_of(method: str | MakeMethod, label: str | None = None) -> MethodSpec:
    """Return a method with its label.

    Raises:
        TypeError: it is neither a spec nor makes a method, as an instance.
    """
    if isinstance(method, str):
        spec = MethodSpec.parse(method)
        return MethodSpec(label or spec.label, spec.name, spec.parameters)
    if not callable(method):
        raise TypeError(
            f"{method!r} is an object: give its class, or a function that makes one, since every "
            "replay begins without history."
        )
    if not isinstance(label, str | None):
        raise TypeError(f"A label is text, not {label!r}.")
    name = label or _name_of(method)
    return OwnSpec(name, name, make=method)


def _name_of(make: Any) -> str:
    name = getattr(make, "name", None)
    if isinstance(name, str):
        return name
    return getattr(make, "__name__", None) or _name_of(getattr(make, "func", type(make)))
