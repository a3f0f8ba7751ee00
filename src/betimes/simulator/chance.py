"""Random streams, each from a seed and names, so that a new consumer does not shift the numbers of others."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from betimes.model.distributions import (
    Choice,
    Constant,
    Distribution,
    Exponential,
    Gamma,
    Histogram,
    Normal,
    NumberDistribution,
    Uniform,
)
from betimes.model.events import Value


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the random stream of this seed and these names, always from its start."""
    words = [zlib.crc32(name.encode()) for name in names]
    return np.random.default_rng(np.random.SeedSequence([seed, len(words), *words]))


def draw_numbers(
    chance: np.random.Generator, distribution: NumberDistribution, count: int
) -> NDArray[np.float64]:
    """Return this many numbers from a distribution."""
    match distribution:
        case Constant():
            return np.full(count, distribution.value)
        case Uniform():
            return chance.uniform(distribution.low, distribution.high, count)
        case Normal():
            return np.maximum(chance.normal(distribution.mean, distribution.sd, count), distribution.low)
        case Exponential():
            return chance.exponential(distribution.mean, count)
        case Gamma():
            beyond = distribution.mean - distribution.least
            return distribution.least + chance.gamma(distribution.shape, beyond / distribution.shape, count)
        case Histogram():
            weights = np.array(distribution.weights)
            cells = chance.choice(len(weights), size=count, p=weights / weights.sum())
            return distribution.start + (cells + chance.random(count)) * distribution.width


def draw_values(chance: np.random.Generator, distribution: Distribution, count: int) -> list[Value]:
    """Return this many attribute values from a distribution of numbers, texts or flags."""
    if not isinstance(distribution, Choice):
        return list(draw_numbers(chance, distribution, count).tolist())
    weights = np.array(distribution.weights or (1.0,) * len(distribution.values))
    picks = chance.choice(len(distribution.values), size=count, p=weights / weights.sum())
    return [distribution.values[pick] for pick in picks.tolist()]
