"""Checks of predictor parameters, whose errors name the parameter."""

from collections.abc import Collection


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """``value`` if it is an integer from ``least`` to ``most``.

    Raises:
        ValueError: it is not; the message names the parameter.
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")


def number(name: str, value: object, least: float, most: float) -> float:
    """``value`` if it is a number from ``least`` to ``most``; NaN never is.

    Raises:
        ValueError: it is not; the message names the parameter.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {value!r}.")


def choice(name: str, value: object, choices: Collection[str]) -> str:
    """``value`` if it is one of ``choices``.

    Raises:
        ValueError: it is not; the message names the parameter and lists the choices.
    """
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
