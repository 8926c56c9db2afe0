"""Means over workloads and over seeds, and how sure a mean over seeds is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from functools import cache

#: The share of repetitions whose confidence interval contains the true mean.
CONFIDENCE = 0.95

#: A value whose interval is wider than this part of it, to either side, is marked.
UNSURE = 0.05

#: Halvings after which a bisection has found all the digits of a number.
HALVINGS = 60


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the geometric mean, which is 0 if a value is 0, or None if one is missing or below 0.

    None for no values.
    """
    found = [*values]
    if 0 in found and None not in found:
        return 0.0
    logs = _logs(found)
    return math.exp(sum(logs) / len(logs)) if logs else None


def mean_of_seeds(values: Iterable[float | None]) -> float | None:
    """Return the mean of one quantity with several seeds, or None if one is missing."""
    found = [*values]
    there = [value for value in found if value is not None]
    return sum(there) / len(there) if there and len(there) == len(found) else None


def mean_ratio_of_seeds(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of one ratio with several seeds, or None if one is missing.

    There is none either if the ratio is 0 with some of the seeds: one draw would decide that the
    mean is 0. A single seed's ratio is returned to the last digit.
    """
    found = [*ratios]
    if len(found) == 1:
        return found[0]
    return None if 0 in found and any(found) else geometric_mean(found)


def log_half_width(ratios: Iterable[float | None]) -> float | None:
    """Return half the width of the confidence interval of the mean of ratios, in logarithms.

    The interval is Student's t, for ratios drawn by one seed each; inverse ratios have the same
    one. None for fewer than two ratios, or if one is missing or not positive.
    """
    logs = _logs(ratios)
    if logs is None or len(logs) < 2:
        return None
    return student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))


def _logs(values: Iterable[float | None]) -> list[float] | None:
    """Return the logarithms of values, or None if one is missing or not positive."""
    found = [*values]
    logs = [math.log(value) for value in found if value and value > 0]
    return logs if len(logs) == len(found) else None


def half_width(ratios: Iterable[float | None]) -> float | None:
    """Return half the width of the confidence interval of the geometric mean of ratios.

    The interval is symmetric around the mean in logarithms only; this is half the distance from its
    lower end to its upper one.
    """
    found = [*ratios]
    mean, wide = geometric_mean(found), log_half_width(found)
    return None if mean is None or wide is None else mean * math.sinh(wide)


def ends(mean: float | None, half_width: float | None) -> tuple[float, float] | None:
    """Return the ends of the confidence interval of a geometric mean with that `half_width`.

    The mean is the geometric mean of the two.
    """
    if mean is None or half_width is None:
        return None
    high = math.hypot(mean, half_width) + half_width
    return mean**2 / high, high


def reaches(mean: float | None, half_width: float | None) -> tuple[float, float]:
    """Return how far that interval goes below the mean and above it; 0 without an interval."""
    found = ends(mean, half_width)
    if found is None or mean is None:
        return 0.0, 0.0
    # An interval of next to no width may lie beside its mean, due to rounding.
    return max(mean - found[0], 0.0), max(found[1] - mean, 0.0)


def interval_fields(
    mean: float | None, half_width: float | None, of: str = ""
) -> dict[str, float | None]:
    """Return the fields that `--json` has for the confidence interval of a geometric mean."""
    low, high = ends(mean, half_width) or (None, None)
    numbers = {"half_width": half_width, "low": low, "high": high}
    return {f"{of}{name}_95": number for name, number in numbers.items()}


def is_unsure(value: float | None, half_width: float | None) -> bool:
    """Return whether the confidence interval of a value is so wide that it is marked."""
    return value is not None and half_width is not None and half_width > UNSURE * abs(value)


@cache
def student_t(degrees: int) -> float:
    """Return the t such that `CONFIDENCE` of Student's distribution lies between -t and t.

    Neither Python nor any library that we require has its quantiles.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < CONFIDENCE else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """Return the share of Student's distribution that lies between -t and t.

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
