"""The weights of the network as a file: plain arrays, and a header that tells their origin."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np
from msgspec import Struct

from predictors.methods.attention_features import CONTEXT, FEATURES, VERSION
from predictors.methods.attention_network import Layers
from predictors.methods.attention_search import Model

ARRAYS = ("features", "context", "bias", "second", "second_bias", "units", "direct")
"""Names of the arrays in the file, in the order of Layers."""

SHARES = ("by_hand", "unseen")
"""Entries of the header that older files lack: to them they are 0."""

MOST_UNSEEN = 1_000

LARGEST_FILE = 200_000
"""Bytes; a file of the network is a tenth of it."""

MOST_UNITS = 64
"""In a layer. More would cost more time than a prediction may take."""

SHIPPED = "attention.npz"


class UnusableWeightsError(ValueError):
    """The file holds no weights for this version of the network."""


class Weights(Struct, frozen=True, kw_only=True, eq=False):
    """What was learned, and from what.

    Attributes:
        layers: the arrays of the network, as the compiled code takes them.
        by_hand: the share of all weight that goes by the hand-chosen likeness of least-cost.
        unseen: how many past runs the runtimes that no run had count for.
        origin: what is said of where they come from: logs, acknowledgements, settings, seed.
    """

    layers: Layers
    by_hand: float = 0.0
    unseen: float = 0.0
    origin: Mapping[str, Any]

    @property
    def model(self) -> Model:
        """What compiled code weighs by."""
        return self.layers, float(self.by_hand), float(self.unseen)

    def to_bytes(self) -> bytes:
        """As the content of a file."""
        header = {
            "version": VERSION,
            "features": list(FEATURES),
            "context": list(CONTEXT),
            "by_hand": self.by_hand,
            "unseen": self.unseen,
            **self.origin,
        }
        text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
        arrays: dict[str, Any] = dict(zip(ARRAYS, self.layers, strict=True))
        file = BytesIO()
        np.savez(file, header=text, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Weights":
        """Read what ``to_bytes`` wrote; anything else is refused.

        Raises:
            UnusableWeightsError: the message says what is wrong.
        """
        if len(content) > LARGEST_FILE:
            raise UnusableWeightsError(f"The file is larger than {LARGEST_FILE:,} bytes.")
        try:
            with np.load(BytesIO(content), allow_pickle=False) as file:
                header = json.loads(file["header"].tobytes())
                layers = tuple(np.ascontiguousarray(file[name]) for name in ARRAYS)
        except (BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
            raise UnusableWeightsError(f"This is no file of weights: {error}") from error
        check_header(header)
        check_layers(layers)
        described = {"version", "features", "context", *SHARES}
        origin = {name: value for name, value in header.items() if name not in described}
        shares = {name: header.get(name, 0.0) for name in SHARES}
        return cls(layers=(*layers,), **shares, origin=origin)  # type: ignore[arg-type]


def check_header(header: Any) -> None:
    """Refuse weights that were learned for other features.

    Raises:
        UnusableWeightsError: the message says what is wrong.
    """
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise UnusableWeightsError(f"The weights are not of version {VERSION}.")
    for name, wanted in (("features", FEATURES), ("context", CONTEXT)):
        if header.get(name) != list(wanted):
            raise UnusableWeightsError(f"The weights were learned for other {name}.")
    by_hand, unseen = (header.get(name, 0.0) for name in SHARES)
    if not isinstance(by_hand, int | float) or not 0 <= by_hand < 1:
        raise UnusableWeightsError("by_hand must be a share of all weight, less than 1.")
    if not isinstance(unseen, int | float) or not 0 <= unseen <= MOST_UNSEEN:
        raise UnusableWeightsError(f"unseen must be a number of runs, at most {MOST_UNSEEN:,}.")


def check_layers(layers: Sequence[Any]) -> None:
    """Refuse arrays that the compiled code could not take.

    Raises:
        UnusableWeightsError: the message says what is wrong.
    """
    units, again = len(layers[2].ravel()), len(layers[4].ravel())
    if not (0 < units <= MOST_UNITS and 0 < again <= MOST_UNITS):
        raise UnusableWeightsError(f"A layer has 1 to {MOST_UNITS} units.")
    shapes = shapes_of(units, again)
    for name, array, shape in zip(ARRAYS, layers, shapes, strict=True):
        if array.dtype != np.float32 or array.shape != shape:
            raise UnusableWeightsError(f"{name} must be {shape} numbers of 32 bits.")
        if not np.isfinite(array).all():
            raise UnusableWeightsError(f"{name} must be finite.")


def shapes_of(units: int, again: int) -> tuple[tuple[int, ...], ...]:
    """The shapes of the network's arrays, given the units of its two layers."""
    features, context = len(FEATURES), len(CONTEXT)
    return (
        (units, features),
        (units, context),
        (units,),
        (again, units),
        (again,),
        (again,),
        (features,),
    )


def zeros(units: int, again: int) -> Layers:
    """A network that weighs all atoms alike."""
    layers = [np.zeros(shape, np.float32) for shape in shapes_of(units, again)]
    return (*layers,)  # type: ignore[return-value]


NOTHING_LEARNED = Weights(layers=zeros(1, 1), origin={})
"""For who wants the atoms only."""


@cache
def shipped() -> Weights:
    """The weights that come with the package, learned on public logs."""
    return Weights.from_bytes(files("predictors").joinpath("data", SHIPPED).read_bytes())
