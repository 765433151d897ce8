"""Pure: logarithmic buckets of spans of time, and percentiles of counts in them.

A bucket holds the spans from above 1.1^(bucket-1) to 1.1^bucket seconds; bucket 0 all up to a second. A percentile is
the upper edge of its bucket: never too small, and at most a tenth too large (or a second, below a second).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

GROWTH = 1.1

_LOG = math.log(GROWTH)


def bucket_of(seconds: float) -> int:
    """Return the bucket of a span."""
    if seconds <= 1.0:
        return 0
    bucket = max(round(math.log(seconds) / _LOG), 1)
    while seconds > edge_of(bucket):  # what rounding got wrong
        bucket += 1
    while seconds <= edge_of(bucket - 1):
        bucket -= 1
    return bucket


def edge_of(bucket: int) -> float:
    """Return the longest span in a bucket, in seconds."""
    return GROWTH**bucket


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the span, in seconds, within which this share (from 0 to 1) of the counted is; None if nothing is counted.

    Args:
        counts: how many, by bucket.
        share: 0.95 for the 95th percentile.
    """
    left = math.ceil(share * sum(counts.values()))
    for bucket in sorted(counts):
        left -= counts[bucket]
        if counts[bucket] and left <= 0:
            return edge_of(bucket)
    return None
