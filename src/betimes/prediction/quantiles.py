"""Distribution functions and quantiles of the distributions of `model`."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from betimes.kernels.types import Numbers
from betimes.model.distributions import (
    Constant,
    Exponential,
    Gamma,
    Histogram,
    Normal,
    NumberDistribution,
    Uniform,
)


def below(distribution: NumberDistribution, values: Numbers) -> Numbers:
    """Return P(X <= value) for each value."""
    match distribution:
        case Constant(value=value):
            return np.asarray(values >= value, dtype=np.float64)
        case Uniform(low=low, high=high):
            return np.clip((values - low) / max(high - low, 1e-300), 0.0, 1.0)
        case Normal(mean=mean, sd=sd, low=low):
            share = special.ndtr((values - mean) / max(sd, 1e-300))
            return np.where(values >= low, share, 0.0)
        case Exponential(mean=mean):
            return -np.expm1(-np.maximum(values, 0.0) / max(mean, 1e-300))
        case Gamma(mean=mean, shape=shape, least=least):
            scale = max(mean - least, 1e-300) / shape
            return np.asarray(special.gammainc(shape, np.maximum(values - least, 0.0) / scale))
        case Histogram():
            edges, shares = _steps(distribution)
            return np.interp(values, edges, shares)


def quantiles(distribution: NumberDistribution, shares: Numbers) -> Numbers:
    """Return for each share the value below which it lies."""
    match distribution:
        case Constant(value=value):
            return np.full(len(shares), value)
        case Uniform(low=low, high=high):
            return low + shares * (high - low)
        case Normal(mean=mean, sd=sd, low=low):
            return np.asarray(np.maximum(mean + sd * special.ndtri(shares), low))
        case Exponential(mean=mean):
            return -mean * np.log1p(-shares)
        case Gamma(mean=mean, shape=shape, least=least):
            return np.asarray(least + (mean - least) / shape * special.gammaincinv(shape, shares))
        case Histogram():
            edges, below_edges = _steps(distribution)
            return np.interp(shares, below_edges, edges)


def second_moment(distribution: NumberDistribution) -> float:
    """Return E[X^2].

    >>> math.isclose(second_moment(Uniform(0.0, 3.0)), 3.0)
    True
    """
    return distribution.variance + distribution.mean**2


def _steps(distribution: Histogram) -> tuple[Numbers, Numbers]:
    shares = np.concatenate([[0.0], np.cumsum(distribution.weights)]) / math.fsum(distribution.weights)
    edges = distribution.start + distribution.width * np.arange(len(shares), dtype=np.float64)
    return edges, shares
