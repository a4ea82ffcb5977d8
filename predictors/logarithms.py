"""Machine code for the natural logarithms of many numbers at once.

The processor takes several of them in one instruction, which costs a tenth of as many calls of the
C library. The method is that of ``log`` in FreeBSD's libm: a number is 2^k (1 + f) with 1 + f
between sqrt(1/2) and sqrt(2), and the logarithm of 1 + f is a polynomial in f / (2 + f). The error
is less than one unit in the last place.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled_for_lanes

Floats = NDArray[np.float64]

_ONE = 0x3FF0000000000000
_HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_FRACTION = (1 << 52) - 1
_AS_REAL = 0x4330000000000000  # the bits of 2^52: with a small integer in them they are their sum
_BIAS = 2.0**52 + 1023
_LN2, _REST_OF_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_POLYNOMIAL = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


@compiled_for_lanes
def take_logarithms(numbers: Floats, count: int) -> None:
    """Replace the first ``count`` numbers, which are positive, by their logarithms."""
    exponents = np.empty(count, np.int64)
    bits = numbers.view(np.int64)
    for index in range(count):
        shifted = bits[index] + (_ONE - _HALF_ROOT)
        exponents[index] = ((shifted >> 52) & 0x7FF) | _AS_REAL
        bits[index] = (shifted & _FRACTION) + _HALF_ROOT
    powers = exponents.view(np.float64)
    c1, c2, c3, c4, c5, c6, c7 = _POLYNOMIAL
    for index in range(count):
        power = powers[index] - _BIAS
        fraction = numbers[index] - 1.0
        share = fraction / (2.0 + fraction)
        square = share * share
        fourth = square * square
        even = fourth * (c2 + fourth * (c4 + fourth * c6))
        odd = square * (c1 + fourth * (c3 + fourth * (c5 + fourth * c7)))
        half = 0.5 * fraction * fraction
        rest = share * (half + (odd + even)) + power * _REST_OF_LN2
        numbers[index] = power * _LN2 - ((half - rest) - fraction)


@compiled_for_lanes
def take_logarithms_of_next(numbers: Floats, count: int) -> None:
    """Replace each of the first ``count`` numbers, none negative, by the logarithm of 1 more.

    As exact as ``log1p``: what is lost where one is added is made good.
    """
    lost = np.empty(count)
    for index in range(count):
        more = 1.0 + numbers[index]
        lost[index] = (numbers[index] - (more - 1.0)) / more
        numbers[index] = more
    take_logarithms(numbers, count)
    for index in range(count):
        numbers[index] += lost[index]
