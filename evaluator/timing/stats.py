"""Intervals for noisy times: trimmed means and Student's t, in plain Python.

Ratios are compared as logarithms of pairs measured side by side. A symmetrical trimmed mean with a winsorised
deviation (Tukey and McLaughlin, 1963) keeps one disturbed pair from deciding, and keeps its coverage for heavy tails.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

from evaluator.types import Interval

_TRIM = 0.2


def student_cdf(t: float, df: float) -> float:
    """Return the probability that Student's t with `df` degrees of freedom is at most `t`."""
    tail = 0.5 * _regularised_beta(df / (df + t * t), df / 2, 0.5)
    return 1.0 - tail if t >= 0 else tail


@lru_cache(maxsize=1024)
def student_quantile(probability: float, df: float) -> float:
    """Return the t below which Student's distribution has `probability`, found by bisection to 1e-10."""
    if not 0 < probability < 1 or df <= 0:
        raise ValueError("a quantile needs a probability inside (0, 1) and positive degrees of freedom")
    low, high = -1.0, 1.0
    while student_cdf(low, df) > probability:
        low *= 2
    while student_cdf(high, df) < probability:
        high *= 2
    while high - low > 1e-10 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if student_cdf(middle, df) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _regularised_beta(x: float, a: float, b: float) -> float:
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1.0 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function (modified Lentz; Numerical Recipes 6.4)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            result *= d * c
        if abs(d * c - 1.0) < 1e-14:
            break
    return result


def trimmed(samples: Sequence[float]) -> tuple[float, float, int]:
    """Return the trimmed mean of two samples or more, its standard error, and its degrees of freedom."""
    ordered = sorted(samples)
    n = len(ordered)
    cut = int(_TRIM * n)
    kept = ordered[cut : n - cut]
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    error = statistics.stdev(winsorised) / ((1 - 2 * cut / n) * math.sqrt(n))
    return statistics.fmean(kept), error, n - 2 * cut - 1


def mean_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, Interval]:
    """Return the trimmed mean with its two-sided interval, which is infinitely wide for one sample."""
    if len(samples) < 2:
        return samples[0], Interval(low=-math.inf, high=math.inf, confidence=confidence)
    centre, error, df = trimmed(samples)
    reach = student_quantile(0.5 + confidence / 2, df) * error
    return centre, Interval(low=centre - reach, high=centre + reach, confidence=confidence)


def ratio_interval(log_ratios: Sequence[float], confidence: float = 0.95) -> tuple[float, Interval]:
    """Return a ratio with its interval, from logarithms of paired ratios."""
    centre, interval = mean_interval(log_ratios, confidence)
    return math.exp(centre), Interval(low=_exp(interval.low), high=_exp(interval.high), confidence=confidence)


def about_common_mean(groups: Sequence[Sequence[float]]) -> list[float]:
    """Return all values, with each group moved so that its mean is that of all.

    Differences between groups are not noise: more values would not reduce them. The groups' means take degrees of
    freedom, so the values are spread a little further. They stay as they are where a group has fewer than two.
    """
    every = [value for group in groups for value in group]
    if any(len(group) < 2 for group in groups) or len(every) <= len(groups):
        return every
    mean = statistics.fmean(every)
    widened = math.sqrt((len(every) - 1) / (len(every) - len(groups)))
    return [mean + widened * (value - statistics.fmean(group)) for group in groups for value in group]


def lower_bound(log_ratios: Sequence[float], confidence: float = 0.999) -> float:
    """Return the one-sided lower bound of a ratio, from logarithms of independent repetitions.

    It is of the plain mean, by Student's t; 0 for fewer than two repetitions.
    """
    if len(log_ratios) < 2:
        return 0.0
    n = len(log_ratios)
    error = statistics.stdev(log_ratios) / math.sqrt(n)
    return math.exp(statistics.fmean(log_ratios) - student_quantile(confidence, n - 1) * error)


def geometric_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted geometric mean of positive values."""
    return math.exp(sum(w * math.log(v) for v, w in zip(values, weights, strict=True)) / sum(weights))


def combine(
    parts: Sequence[Sequence[float]], weights: Sequence[float], confidence: float = 0.95
) -> tuple[float, Interval]:
    """Return the weighted geometric mean of several ratios, each from its own log ratios, with its interval.

    Errors add up as for independent means; degrees of freedom after Welch and Satterthwaite.
    """
    total = sum(weights)
    centre, variance, spread = 0.0, 0.0, 0.0
    for samples, weight in zip(parts, weights, strict=True):
        if len(samples) < 2:
            raise ValueError("an interval needs at least two samples of every part")
        mean, error, df = trimmed(samples)
        share = weight / total
        centre += share * mean
        variance += (share * error) ** 2
        spread += (share * error) ** 4 / df
    freedom = variance**2 / spread if spread > 0 else 1e6
    reach = student_quantile(round(0.5 + confidence / 2, 12), round(max(freedom, 1.0), 6)) * math.sqrt(variance)
    interval = Interval(low=math.exp(centre - reach), high=math.exp(centre + reach), confidence=confidence)
    return math.exp(centre), interval


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
