"""The network that scores support points (equation 3 of docs/attention.md), and its weights.

The score is linear in the features, plus what two layers of rectified units make of features and
context; the softmax of the scores over the support points of a job is a distribution.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from msgspec import Struct

from predictors.compiled import compiled
from predictors.methods.attention_features import CONTEXT, FEATURES, VERSION, Singles

SHARES = {"kernel_share": "by_hand", "tail_runs": "unseen"}
"""Entries of the file's header by field; older files lack them, which means 0."""

MOST_TAIL_RUNS = 1_000

LARGEST_FILE = 200_000
"""Bytes; a file of the network is a tenth of it."""

MOST_UNITS = 64
"""Largest number of units in a layer; more would take more time than a prediction may take."""

SHIPPED = "attention.npz"


class Layers(NamedTuple):
    """Arrays of the network, in the order and by the names of the file.

    Attributes:
        features: first layer, by unit and feature.
        context: first layer, by unit and entry of the context.
        bias: of the first layer.
        second: second layer, by unit and unit of the first.
        second_bias: of the second layer.
        units: what each unit of the second layer adds to the score.
        direct: what each feature adds to the score by itself.
    """

    features: Singles
    context: Singles
    bias: Singles
    second: Singles
    second_bias: Singles
    units: Singles
    direct: Singles


@compiled
def weigh_support(features: Singles, context: Singles, count: int, layers: Layers) -> Singles:
    """Return the weight of each of ``count`` support points; their sum is 1."""
    first = hidden(features, context, count, layers)
    second = hidden_again(first, count, layers)
    return softmax(scores(features, second, count, layers))


@compiled
def hidden(features: Singles, context: Singles, count: int, layers: Layers) -> Singles:
    """Return the output of the first layer, by unit and support point."""
    of_features, of_context, bias = layers.features, layers.context, layers.bias
    units = np.empty((len(bias), count), np.float32)
    for unit in range(len(bias)):
        start = bias[unit]
        for each in range(len(context)):
            start += of_context[unit, each] * context[each]
        for index in range(count):
            units[unit, index] = start
    add_products(units, of_features, features, count)
    rectify(units)
    return units


@compiled
def hidden_again(first: Singles, count: int, layers: Layers) -> Singles:
    """Return the output of the second layer, by unit and support point."""
    matrix, bias = layers.second, layers.second_bias
    units = np.empty((len(bias), count), np.float32)
    for unit in range(len(bias)):
        start = bias[unit]
        for index in range(count):
            units[unit, index] = start
    add_products(units, matrix, first, count)
    rectify(units)
    return units


@compiled
def scores(features: Singles, second: Singles, count: int, layers: Layers) -> Singles:
    """Return the score of each support point."""
    total = np.zeros((1, count), np.float32)
    add_products(total, layers.units.reshape((1, -1)), second, count)
    add_products(total, layers.direct.reshape((1, -1)), features, count)
    return total.ravel()


@compiled
def add_products(sums: Singles, matrix: Singles, rows: Singles, count: int) -> None:
    """Add the product of a matrix and the first ``count`` columns of ``rows`` to ``sums``.

    Four rows are added to four sums at a time, so that memory is seldom read. It is one function,
    as numba would count references to rows in calls, and in this order, which fixes the rounding.
    """
    units, some = len(sums) // 4 * 4, matrix.shape[1] // 4 * 4
    for unit in range(0, units, 4):
        p, q, r, s = matrix[unit], matrix[unit + 1], matrix[unit + 2], matrix[unit + 3]
        to_p, to_q, to_r, to_s = sums[unit], sums[unit + 1], sums[unit + 2], sums[unit + 3]
        for each in range(0, some, 4):
            a, b, c, d = rows[each], rows[each + 1], rows[each + 2], rows[each + 3]
            pa, pb, pc, pd = p[each], p[each + 1], p[each + 2], p[each + 3]
            qa, qb, qc, qd = q[each], q[each + 1], q[each + 2], q[each + 3]
            ra, rb, rc, rd = r[each], r[each + 1], r[each + 2], r[each + 3]
            sa, sb, sc, sd = s[each], s[each + 1], s[each + 2], s[each + 3]
            for at in range(count):
                to_p[at] += (pa * a[at] + pb * b[at]) + (pc * c[at] + pd * d[at])
                to_q[at] += (qa * a[at] + qb * b[at]) + (qc * c[at] + qd * d[at])
                to_r[at] += (ra * a[at] + rb * b[at]) + (rc * c[at] + rd * d[at])
                to_s[at] += (sa * a[at] + sb * b[at]) + (sc * c[at] + sd * d[at])
    for unit in range(units, len(sums)):
        p, to_p = matrix[unit], sums[unit]
        for each in range(0, some, 4):
            a, b, c, d = rows[each], rows[each + 1], rows[each + 2], rows[each + 3]
            pa, pb, pc, pd = p[each], p[each + 1], p[each + 2], p[each + 3]
            for at in range(count):
                to_p[at] += (pa * a[at] + pb * b[at]) + (pc * c[at] + pd * d[at])
    for unit in range(len(sums)):
        for each in range(some, matrix.shape[1]):
            add_scaled(sums[unit], matrix[unit, each], rows[each], count)


@compiled
def add_scaled(row: Singles, factor: float, other: Singles, count: int) -> None:
    """Add ``factor`` times ``other`` to the row."""
    for index in range(count):
        row[index] += factor * other[index]


@compiled
def rectify(units: Singles) -> None:
    """Replace negative numbers by 0."""
    zero, flat = np.float32(0), units.ravel()
    for index in range(len(flat)):
        flat[index] = max(zero, flat[index])


@compiled
def softmax(score: Singles) -> Singles:
    """Return the softmax of scores, in place."""
    highest = score.max()
    total = np.float32(0)
    for index in range(len(score)):
        score[index] = np.exp(score[index] - highest)
        total += score[index]
    for index in range(len(score)):
        score[index] /= total
    return score


class UnusableWeightsError(ValueError):
    """The file holds no weights for this version of the network."""


class Weights(Struct, frozen=True, kw_only=True, eq=False):
    """The learned weights and their origin.

    Attributes:
        kernel_share: share of all weight that the handcrafted kernel has.
        tail_runs: number of runs that the tail mixture counts for.
        origin: logs, acknowledgements, settings, seed.
    """

    layers: Layers
    kernel_share: float = 0.0
    tail_runs: float = 0.0
    origin: Mapping[str, Any]

    @property
    def model(self) -> tuple[Layers, float, float]:
        """The weights as compiled code takes them."""
        return self.layers, float(self.kernel_share), float(self.tail_runs)

    def to_bytes(self) -> bytes:
        """Return the weights as content of a file: arrays, and a JSON header."""
        header = {
            "version": VERSION,
            "features": list(FEATURES),
            "context": list(CONTEXT),
            **{entry: getattr(self, field) for field, entry in SHARES.items()},
            **self.origin,
        }
        text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
        arrays: dict[str, Any] = self.layers._asdict()
        file = BytesIO()
        np.savez(file, header=text, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Weights":
        """Read what ``to_bytes`` wrote.

        Raises:
            UnusableWeightsError: the content is anything else; the message names the fault.
        """
        if len(content) > LARGEST_FILE:
            raise UnusableWeightsError(f"The file is larger than {LARGEST_FILE:,} bytes.")
        try:
            with np.load(BytesIO(content), allow_pickle=False) as file:
                header = json.loads(file["header"].tobytes())
                layers = Layers(*(np.ascontiguousarray(file[name]) for name in Layers._fields))
        except (BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
            raise UnusableWeightsError(f"This is no file of weights: {error}") from error
        check_header(header)
        check_layers(layers)
        described = {"version", "features", "context", *SHARES.values()}
        origin = {name: value for name, value in header.items() if name not in described}
        shares = {field: header.get(entry, 0.0) for field, entry in SHARES.items()}
        return cls(layers=layers, **shares, origin=origin)


def check_header(header: Any) -> None:
    """Check the header of a file.

    Raises:
        UnusableWeightsError: the weights were learned for other features, or a share is no share.
    """
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise UnusableWeightsError(f"The weights are not of version {VERSION}.")
    for name, entries in (("features", FEATURES), ("context", CONTEXT)):
        if header.get(name) != list(entries):
            raise UnusableWeightsError(f"The weights were learned for other {name}.")
    share, runs = (header.get(entry, 0.0) for entry in SHARES.values())
    if not isinstance(share, int | float) or not 0 <= share < 1:
        raise UnusableWeightsError("by_hand must be a share of all weight, less than 1.")
    if not isinstance(runs, int | float) or not 0 <= runs <= MOST_TAIL_RUNS:
        raise UnusableWeightsError(f"unseen must be a number of runs, at most {MOST_TAIL_RUNS:,}.")


def check_layers(layers: Sequence[Any]) -> None:
    """Check the arrays of a file.

    Raises:
        UnusableWeightsError: an array has another shape or type, or a number is not finite.
    """
    units, again = len(layers[2].ravel()), len(layers[4].ravel())
    if not (0 < units <= MOST_UNITS and 0 < again <= MOST_UNITS):
        raise UnusableWeightsError(f"A layer has 1 to {MOST_UNITS} units.")
    shapes = shapes_of(units, again)
    for name, array, shape in zip(Layers._fields, layers, shapes, strict=True):
        if array.dtype != np.float32 or array.shape != shape:
            raise UnusableWeightsError(f"{name} must be {shape} numbers of 32 bits.")
        if not np.isfinite(array).all():
            raise UnusableWeightsError(f"{name} must be finite.")


def shapes_of(units: int, again: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the network's arrays, given the units of its two layers."""
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
    """Return a network that weighs all support points alike."""
    return Layers(*(np.zeros(shape, np.float32) for shape in shapes_of(units, again)))


NOTHING_LEARNED = Weights(layers=zeros(1, 1), origin={})
"""Placeholder weights, for callers that need only the features."""


@cache
def shipped() -> Weights:
    """Return the weights that come with the package, learned on public logs."""
    return Weights.from_bytes(files("predictors").joinpath("data", SHIPPED).read_bytes())
