"""Ordering hardware to begin with: that of x86, with a flush and a fence that waits for it.

A program, or a software log, asks for three things: `flush` has a line written back; `order` has
earlier stores survive a power failure if later ones do; `durable` waits until earlier stores are
durable. Here `order` costs as much as `durable`. Cheaper hardware keeps stores in a buffer of its
own, and sends them in an order that it chooses: see `examples/designs/epochs.py`.
"""

from indelible.design import Design


class Template(Design):
    """Hardware with a flush, and one fence that waits."""

    family = "ordering"
    # A fence waits for whatever makes writes durable here: a controller, or the cells.
    needs = "nothing"
    # The promise that crash tests hold it to: a line that a core flushed before a fence is durable
    # when the fence ends. Other models are `epoch` and `visible`.
    model = "fenced"
    rules = {
        "flush_writes_back": "a flush writes the line back",
        "fence_waits": "a fence waits until what was flushed is durable",
    }

    def fence(self, fence, below):
        """Do what the program asks for, and say when its core goes on."""
        if fence.kind == "flush":
            if not self.rules.flush_writes_back:
                return None
            line, keep, kind = fence.line, fence.keep, fence.why
            below.flush(fence.core, fence.drained, line, keep=keep, kind=kind)
            # One way of flushing, clflush, waits by itself.
            return below.fence(fence.core, fence.drained) if fence.waits else None
        if not self.rules.fence_waits:
            return None
        return below.fence(fence.core, fence.drained)
