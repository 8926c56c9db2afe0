"""What the simulator that is none answers to litmus tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What is listed of the hardware that there is.
ORDERS = [
    {"name": "bbb", "model": "visible", "paper": "A Paper", "summary": "buffers with a battery"},
    {"name": "hops", "model": "epoch", "paper": "A Paper", "summary": "persist buffers"},
    {"name": "ideal", "model": "unordered", "paper": "ours", "summary": "what does nothing"},
]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return rows of which some hardware, `leaky` and `torn`, does not keep its promise.

    `narrow` has no room for some of what it is asked.
    """
    tests = [(path, "A=0 B=1") for path, _ in request["tests"]]
    tests = tests or [("two_stores", "A=0 B=1"), ("older_value_returns", "X=1 Y=1")]
    if request["timelines"]:
        tests.insert(1, ("two_stores", "A=1 B=0"))
    orders = [order["name"] for order in request["orders"]] or [order["name"] for order in ORDERS]
    if request["program"] is not None:
        tests = []
    rows = [_row(test, image, order) for test, image in tests for order in orders]
    for row in rows:
        row["file"] = row["test"] if request["tests"] else None
        row["test"] = row["test"].rsplit("/")[-1]
        if request["timelines"] and row["seen"]:
            row["timeline"] = _timeline("A", "B")
    answered = {"rows": rows, "cancelled": False}
    if request["random"] or request["program"]:
        answered["random"] = [_random_row(order, request) for order in orders]
    if request["mutants"]:
        answered["mutants"] = [row for order in orders for row in _mutants(order)]
    return answered


def _timeline(first: str, second: str) -> dict[str, Any]:
    """Return how the later of two lines came to be durable alone."""

    def of(
        where: str, lane: str, what: str, start: int, end: int, **args: object
    ) -> dict[str, Any]:
        event = {"where": where, "lane": lane, "what": what, "from": start, "until": end}
        return event | ({"args": args} if args else {})

    events = [
        of("core 0", "program", f"store {first}", 3, 3, new="0x1", old="0x0"),
        of("core 0", "fetches", f"fetch to write {first}", 3, 160),
        of("core 0", "program", "fence, order", 161, 161),
        of("core 0", "program", f"store {second}", 162, 162, new="0x1", old="0x0"),
        of("controller 0", "arriving", f"data {second}", 200, 220, bytes=64),
        of("controller 0", "write-pending queue", f"data {second}", 220, 1_240, writes=1),
        of("power", "power", "power failure", 1_240, 1_240),
    ]
    early = [{"line": second, "class": "home_write_back", "bytes": 64}]
    machine = ["controller.count=2", "controller.write_buffer_size=1", "pm.tWRITE=400cycles"]
    timeline = {"machine": machine, "event": 9, "cut": 1_240, "order": 1, "early": early}
    return timeline | {"left_out": 0, "events": events}


def _random_row(order: str, request: Mapping[str, Any]) -> dict[str, Any]:
    alone = request["program"]
    programs = request["random"] or 1
    row = {"order": order, "points": 9_000, "images": 81_000, "refused": 0, "refusal": None}
    if order == "narrow":
        row |= {"refused": 13, "refusal": "./narrow.py: slots is 2: each of 3 cores needs one"}
    if order != "torn":
        row |= {"programs": programs, "number": alone, "violation": None, "timeline": None}
        return row | {"program": alone and {"settings": [], "machine": [], "cores": [["order"]]}}
    machine = ["controller.domain=eadr", "llc.size=256B", "l2.size=128B", "l1d.size=128B"]
    steps = ["store 0x48 0x1", "flush 0x48", "order", "movnti 0x80 0x2", "load 0xc0", "work 17"]
    cores = [[*steps * 3, "durable"], ["durable"]]
    program = {"settings": ["entries=1"], "machine": machine, "cores": cores}
    lacks = "order: the image holds 0x0 at 0x40 and lacks 0x1, which was durable"
    row |= {"programs": 38, "number": alone or 38, "program": program, "violation": lacks}
    return row | {"timeline": _timeline("0x40", "0x80")}


def _mutants(order: str) -> list[dict[str, Any]]:
    if order == "ideal":
        return []
    lacks = "order: the image holds 0x0 at 0x40 and lacks 0x1, which was durable"
    shows = {"order": order, "caught": True, "violation": lacks, "test": None, "random": None}
    shows |= {"raises": None, "needless": None}
    rows = [
        shows | {"rule": "fence_waits", "test": "order_between"},
        shows | {"rule": "line_in_order", "random": 1_081},
    ]
    missed = shows | {"caught": False, "violation": None}
    others = [
        missed | {"rule": "be_kind"},
        missed | {"rule": "be_pretty", "raises": "raises: ./torn.py:7: in fence: KeyError: 'oops'"},
        missed | {"rule": "be_quiet", "needless": "nobody hears it"},
    ]
    return [*rows, *others] if order == "torn" else rows


def _row(test: str, image: str, order: str) -> dict[str, Any]:
    allowed = order == "ideal" or (order, test) == ("hops", "two_stores")
    lacks = "order: the image holds 0x0 at A and lacks 0x1, which was durable"
    return {
        "order": order,
        "model": "epoch",
        "test": test,
        "title": f"about {test}",
        "image": image,
        "allowed": allowed,
        "seen": (allowed and test == "two_stores") or order == "leaky",
        "images": 0 if order == "narrow" else 1_400,
        "sampled": 17 if order == "wide" else 0,
        "runs": 0 if order == "narrow" else 34,
        "counted": 0 if order in ("narrow", "unasked") else 34,
        "refusal": "./narrow.py: one core is enough" if order == "narrow" else None,
        "violation": lacks if order == "torn" else None,
        "timeline": _timeline("A", "B") if order == "torn" else None,
    }
