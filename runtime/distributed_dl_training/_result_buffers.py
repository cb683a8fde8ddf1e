"""Memory for results that is used again once nobody has any of them."""

import sys
from typing import Any, List, Optional

import numpy

from distributed_dl_training._core import Array

# Buffers, at most, and bytes of each: whoever keeps one result keeps a buffer.  Two, as programs
# have the results of one step until the next one's are there.
_KEPT = 2
LONGEST = 16 << 20
# From 4 MiB on numpy asks the kernel for large pages.  A buffer of so many bytes has some, and what
# is not used of it takes no memory.  In small ones packing 4 MB takes half as long again.
HUGE = 8 << 20


class ResultBuffers:
    """Buffers of which results are views.

    A view refers to the buffer itself, so that the buffer's count of references tells whether there
    are any.  New memory comes from the kernel page by page, which takes longer than to fill it.
    """

    def __init__(self) -> None:
        self._kept: List[Array] = []

    def take(self, count: int, dtype: "numpy.dtype[Any]") -> Optional[Array]:
        """Return ``count`` elements that nobody else has, or None where there are none."""
        nbytes = count * dtype.itemsize
        if not _COUNTS or nbytes > LONGEST:
            return None
        kept = self._kept
        for at in range(len(kept)):
            if sys.getrefcount(kept[at]) == _COUNTS:
                if kept[at].size < nbytes:
                    kept[at] = _memory_for(nbytes)
                return kept[at][:nbytes].view(dtype)
        if len(kept) == _KEPT:
            return None
        kept.append(_memory_for(nbytes))
        return kept[-1][:nbytes].view(dtype)


def _memory_for(nbytes: int) -> Array:
    return numpy.empty(max(nbytes, HUGE if nbytes > HUGE // 8 else 0), numpy.uint8)


def _alone() -> int:
    """Return the count of references of what only a list has; 0 where none is to be relied on."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)
    if not gil() or not hasattr(sys, "getrefcount"):
        return 0
    kept = [numpy.empty(2, numpy.uint8)]
    alone = sys.getrefcount(kept[0])
    view = kept[0][:1].view(numpy.int8)
    return alone if sys.getrefcount(kept[0]) == alone + 1 and view.base is kept[0] else 0


_COUNTS = _alone()
