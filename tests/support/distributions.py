"""A distribution of runtimes as an object, over the compiled functions of the package."""

from dataclasses import dataclass

import numpy as np

from predictors.distribution import bayes_estimate, cumulative, levels_at, quantile_at


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Support points in ascending order and their weights, in seconds; ``request`` too."""

    values: np.ndarray
    weights: np.ndarray
    request: float

    def estimate(self, penalty=0.0):
        return bayes_estimate(
            self.values, self.weights, len(self.values), self.request, float(penalty)
        )

    def quantile(self, level):
        return quantile_at(self.values, cumulative(self.weights), self.request, float(level))

    def levels(self, runtime):
        return levels_at(self.values, cumulative(self.weights), self.request, float(runtime))

    def left(self, elapsed):
        longer = self.values > elapsed
        return Distribution(
            values=self.values[longer], weights=self.weights[longer], request=self.request
        )
