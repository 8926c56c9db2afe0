"""Means over workloads and over seeds, and how sure a mean over seeds is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from functools import cache

#: The part of repetitions whose confidence interval has the true mean in it.
CONFIDENCE = 0.95

#: A value whose interval is wider than this part of it, to either side, is marked.
UNSURE = 0.05

#: Halvings after which a bisection has found all the digits of a number.
HALVINGS = 60


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the geometric mean, or nothing if a value is missing or not positive."""
    logs = _logs(values)
    return math.exp(sum(logs) / len(logs)) if logs else None


def mean_of_seeds(values: Iterable[float | None]) -> float | None:
    """Return the mean of one quantity with several seeds, or nothing if one is missing."""
    found = [*values]
    there = [value for value in found if value is not None]
    return sum(there) / len(there) if there and len(there) == len(found) else None


def mean_ratio_of_seeds(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of one ratio with several seeds, or nothing if one is missing.

    That of a single seed is itself to the last digit, and with a 0 among them it is 0.
    """
    found = [*ratios]
    return found[0] if len(found) == 1 else 0.0 if 0 in found else geometric_mean(found)


def log_half_width(ratios: Iterable[float | None]) -> float | None:
    """Return how far the confidence interval of the mean of ratios goes, in logarithms.

    It is that of Student's t, for ratios that a seed drew each; that of their inverses is the same.
    There is none for fewer than two, or if one is missing or not positive.
    """
    logs = _logs(ratios)
    if logs is None or len(logs) < 2:
        return None
    return student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))


def _logs(values: Iterable[float | None]) -> list[float] | None:
    """Return the logarithms of values, or nothing if one is missing or not positive."""
    found = [*values]
    logs = [math.log(value) for value in found if value and value > 0]
    return logs if len(logs) == len(found) else None


def half_width(ratios: Iterable[float | None]) -> float | None:
    """Return half of the confidence interval of the geometric mean of ratios.

    Around the mean the interval is as wide on both sides in logarithms, so that this is half of the
    way from its lower end to its upper one.
    """
    found = [*ratios]
    mean, wide = geometric_mean(found), log_half_width(found)
    return None if mean is None or wide is None else mean * math.sinh(wide)


def is_unsure(value: float | None, half_width: float | None) -> bool:
    """Return whether the confidence interval of a value is to be pointed out."""
    return value is not None and half_width is not None and half_width > UNSURE * abs(value)


@cache
def student_t(degrees: int) -> float:
    """Return between which t and -t lies what the confidence asks for of Student's distribution.

    Neither Python nor anything that we need has its quantiles.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < CONFIDENCE else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """Return what part of Student's distribution is between t and -t.

    The tangent of the angle is t over the root of the degrees of freedom. These are the finite
    series 26.7.3 and 26.7.4 of Abramowitz and Stegun's Handbook of Mathematical Functions.
    """
    is_odd = degrees % 2
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for power in range(is_odd, degrees, 2):
        total += term
        term *= math.cos(angle) ** 2 * (power + 1) / (power + 2)
    series = math.sin(angle) * total
    return (angle + series) * 2 / math.pi if is_odd else series
