"""Functions of the distributions of `model`: shares, quantiles, expected excess, moments and multiples."""

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

GAMMA_LEFT = 1e-18  # of a gamma distribution: less than the resolution of numbers near 1


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
    """Return E[X^2]."""
    return distribution.variance + distribution.mean**2


def scaled(distribution: NumberDistribution, factor: float) -> NumberDistribution:
    """Return the distribution of the quantity times a factor.

    >>> scaled(Uniform(1.0, 2.0), 10.0)
    Uniform(low=10.0, high=20.0)
    """
    match distribution:
        case Constant(value=value):
            return Constant(value * factor)
        case Uniform(low=low, high=high):
            return Uniform(low * factor, high * factor)
        case Normal(mean=mean, sd=sd, low=low):
            return Normal(mean * factor, sd * factor, low * factor)
        case Exponential(mean=mean):
            return Exponential(mean * factor)
        case Gamma(mean=mean, shape=shape, least=least):
            return Gamma(mean * factor, shape, least * factor)
        case Histogram(start=start, width=width, weights=weights):
            return Histogram(start * factor, width * factor, weights)


def _steps(distribution: Histogram) -> tuple[Numbers, Numbers]:
    shares = np.concatenate([[0.0], np.cumsum(distribution.weights)]) / math.fsum(distribution.weights)
    edges = distribution.start + distribution.width * np.arange(len(shares), dtype=np.float64)
    return edges, shares


def excess(distribution: NumberDistribution, points: Numbers) -> Numbers:
    """Return E[(x - X)+] at some points x: the integral of the distribution function."""
    match distribution:
        case Constant():
            return np.maximum(points - distribution.value, 0.0)
        case Uniform(low=low, high=high) if high > low:
            inside = np.clip(points, low, high) - low
            return inside**2 / (2.0 * (high - low)) + np.maximum(points - high, 0.0)
        case Uniform():
            return np.maximum(points - distribution.low, 0.0)
        case Normal():
            return _excess_normal(distribution, points)
        case Exponential(mean=mean) if mean > 0.0:
            above = np.maximum(points, 0.0)
            return above + mean * np.expm1(-above / mean)
        case Exponential():
            return np.maximum(points, 0.0)
        case Gamma():
            return _excess_gamma(distribution, points)
        case Histogram():
            return _excess_histogram(distribution, points)


def _excess_normal(distribution: Normal, points: Numbers) -> Numbers:
    mean, sd, low = distribution.mean, distribution.sd, distribution.low
    if sd <= 0.0:
        return np.maximum(points - max(mean, low), 0.0)

    def whole(at: Numbers) -> Numbers:
        z = (at - mean) / sd
        return np.asarray(sd * (z * special.ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)))

    if low == -math.inf:
        return whole(points)
    return np.where(points > low, whole(points) - whole(np.array(low)), 0.0)


def _excess_gamma(distribution: Gamma, points: Numbers) -> Numbers:
    above = np.maximum(points - distribution.least, 0.0)
    beyond, shape = distribution.mean - distribution.least, distribution.shape
    if beyond <= 0.0:
        return above
    scaled = above * (shape / beyond)
    # beyond this point all mass lies below: most of a long grid is skipped
    inside = scaled < special.gammainccinv(shape, GAMMA_LEFT)
    few = scaled[inside]
    below, step = np.ones_like(scaled), np.zeros_like(scaled)
    below[inside] = special.gammainc(shape, few)
    # the recurrence of the incomplete gamma function, instead of a second one for shape + 1
    with np.errstate(divide="ignore"):
        step[inside] = np.exp(shape * np.log(few) - few - special.gammaln(shape + 1.0))
    return np.asarray(above * below - beyond * (below - np.where(scaled > 0.0, step, 0.0)))


def _excess_histogram(distribution: Histogram, points: Numbers) -> Numbers:
    weights = np.array(distribution.weights) / sum(distribution.weights)
    edges = distribution.start + distribution.width * np.arange(len(weights) + 1)
    below = np.concatenate([[0.0], np.cumsum(weights)])
    at_edges = np.concatenate([[0.0], np.cumsum((below[:-1] + below[1:]) / 2.0) * distribution.width])
    cell = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(weights) - 1)
    into = np.clip(points, edges[0], edges[-1]) - edges[cell]
    inside = at_edges[cell] + below[cell] * into + weights[cell] / distribution.width * into**2 / 2.0
    return np.asarray(inside + np.maximum(points - edges[-1], 0.0))
