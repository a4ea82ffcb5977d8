"""Machine code of the network that weighs atoms.

The score of an atom is linear in its features plus what two layers of rectified units make of the
features and the context; the softmax of the scores over a job's atoms is a distribution of its
runtime.
"""

import numpy as np

from predictors.compiled import compiled
from predictors.methods.attention_features import Singles

Layers = tuple[Singles, Singles, Singles, Singles, Singles, Singles, Singles]
"""First layer for features and for the context and its bias, second layer and its bias, what its
units add to the score, and what each feature adds by itself."""


@compiled
def weigh(features: Singles, context: Singles, count: int, layers: Layers) -> Singles:
    """The weight of each of ``count`` atoms; they add up to one."""
    first = hidden(features, context, count, layers)
    second = hidden_again(first, count, layers)
    return softmax(scores(features, second, count, layers))


@compiled
def hidden(features: Singles, context: Singles, count: int, layers: Layers) -> Singles:
    """The first layer: a row for each unit, an entry for each atom."""
    of_features, of_context, bias = layers[:3]
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
    """The second layer."""
    matrix, bias = layers[3], layers[4]
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
    """The score of each atom."""
    of_units, of_features = layers[5], layers[6]
    total = np.zeros((1, count), np.float32)
    add_products(total, of_units.reshape((1, -1)), second, count)
    add_products(total, of_features.reshape((1, -1)), features, count)
    return total.ravel()


@compiled
def add_products(sums: Singles, matrix: Singles, rows: Singles, count: int) -> None:
    """Add the product of a matrix and ``rows``, of which the first ``count`` columns count.

    Four rows are added to four sums at a time, so that each is seldom read. All of that is in one
    function, which counts no references to rows, and in this order, which fixes the rounding.
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
    """Nothing below zero."""
    zero, flat = np.float32(0), units.ravel()
    for index in range(len(flat)):
        flat[index] = max(zero, flat[index])


@compiled
def softmax(score: Singles) -> Singles:
    """Positive weights that add up to one; a higher score weighs exponentially more."""
    highest = score.max()
    total = np.float32(0)
    for index in range(len(score)):
        score[index] = np.exp(score[index] - highest)
        total += score[index]
    for index in range(len(score)):
        score[index] /= total
    return score
