"""Ordering hardware to begin with: that of x86, a flush and a fence that waits for it.

A program, or a software log, asks for three things. `flush` has a line written back; `order` says
that what was stored before it survives if what is stored after it does; `durable` waits until it is
there. Here an order costs what durability costs. Cheaper ones keep stores in a buffer of their own,
and send them in an order that they choose: `examples/designs/epochs.py`.
"""

from indelible.design import Design


class Template(Design):
    """Hardware with a flush, and one fence that waits."""

    family = "ordering"
    # It waits for whatever the machine needs: what a controller has, or what the cells have.
    needs = "nothing"
    # What it promises, and is held to: what a core flushed before a fence is durable when the fence
    # ends. The others are `epoch` and `visible`.
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
