"""The answers of `list` and `explain`, as text for a terminal. Returns strings."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from indelible import text

LIST_COLUMNS = {
    "designs": ("name", "family", "durability", "granularity", "paper", "summary"),
    "orders": ("name", "model", "paper", "summary"),
    "workloads": ("name", "shared", "source", "summary"),
    "profiles": ("name", "workload", "settings", "source"),
    "machines": ("name", "cores_max", "core", "domain", "wpq", "summary"),
}


#: The commands that switch off the rules of things other than designs.
MUTANTS = {"order": "litmus"}


def catalog(kind: str, rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return the table of `list`; a narrow one leaves the paper to `explain`."""
    names = [name for name in LIST_COLUMNS[kind] if width >= 100 or name not in ("paper", "source")]
    headers = [kind[:-1], *(name.removesuffix("_max") for name in names[1:])]
    return text.columns(
        headers, [[text.word(row.get(name)) for name in names] for row in rows], width
    )


def explanation(about: Mapping[str, Any], width: int) -> str:
    """Return everything known of a design, a workload, a machine or ordering hardware."""
    if about["kind"] == "machine-diff":
        return _difference(about, width)
    summary = textwrap.fill(about.get("summary") or "", width)
    if about["kind"] in ("field", "fields"):
        summary = f"of machine {about['machine']}"
    blocks = [f"{about['name']} ({about['kind']})\n{summary}".rstrip()]
    facts = {k: v for k, v in about.items() if isinstance(v, (str, bool, int, float))}
    for known in ("kind", "name", "summary", "machine", "cores", "field"):
        facts.pop(known, None)
    if facts:
        blocks.append("\n".join(text.paragraph(k, text.word(v), width) for k, v in facts.items()))
    if about.get("also"):
        blocks.append(text.paragraph("see also", ", ".join(about["also"]), width))
    if about.get("pairings"):
        blocks.append(text.paragraph("designs", ", ".join(about["pairings"]), width))
    if about.get("params"):
        blocks.append("Parameters (--set)\n" + _parameters(about, about["params"], width))
    if about.get("rules"):
        designs = about.get("pairings") or [about["name"]]
        rules = [[rule["name"], _rule(rule, designs)] for rule in about["rules"]]
        blocks.append(
            f"Rules ({MUTANTS.get(about['kind'], 'crash')} --mutants switches each off)\n"
            + text.columns(["rule", "what"], rules, width)
        )
    if about.get("hardware"):
        blocks.append(_hardware(about, width))
    if about.get("rows"):
        table = [[_key(row), _value(row), _described(row)] for row in about["rows"]]
        blocks.append(text.columns(["field", "value", "what [range] (source)"], table, width))
    return "\n\n".join(blocks)


def _rule(rule: Mapping[str, Any], designs: Sequence[str]) -> str:
    """Return the text of a rule, with the designs that do not need it, and why."""
    found: dict[str, list[str]] = {}
    for row in rule.get("needless", ()):
        found.setdefault(row["reason"], []).append(row["design"])

    def where(names: Sequence[str]) -> str:
        if not {*designs} <= {*names}:
            return f" in {', '.join(names)}"
        return " in every design" if len(designs) > 1 else ""

    doc = rule.get("doc", "")
    if not found:
        return doc
    told = [
        f"Needless{where(names)}{': ' if reason else ''}{reason}" for reason, names in found.items()
    ]
    # A design in Python has texts of any kind.
    return " ".join(
        one if one.endswith((".", "!", "?")) else f"{one}." for one in [doc, *told] if one
    )


def _hardware(about: Mapping[str, Any], width: int) -> str:
    """Return the structures that a design adds to a machine, and their sum for a core."""
    parts = about["hardware"]
    table = [
        [
            part["name"],
            f"{part['bits']:,}",
            f"{part['count']:,}",
            _bytes(part["bytes_per_core"]),
            part["domain"],
            part["where"],
        ]
        for part in parts
    ]
    cores, machine = about["cores"], about["machine"]
    headers = ["structure", "bits", "count", "B a core", "domain", "where"]
    # Papers mostly give the sum for one core.
    by_place: dict[str, float] = {}
    for part in parts:
        by_place[part["where"]] = by_place.get(part["where"], 0) + part["bytes_per_core"] / 1024
    places = [f"{size:,.4g} at the {place}" for place, size in by_place.items()]
    shares = f": {', '.join(places)}" if len(places) > 1 else ""
    return (
        f"Hardware added to machine {machine} with {text.plural(cores, 'core')}\n"
        + text.columns(headers, table, width, right=(1, 2, 3))
        + "\n\n"
        + textwrap.fill(
            f"In all {sum(by_place.values()):,.4g} KiB a core{shares}.",
            width,
            break_on_hyphens=False,
        )
    )


def _bytes(count: float) -> str:
    """Return bytes, with fractions if they are few."""
    return f"{count:,.0f}" if count >= 10_000 else f"{count:,.5g}"


def _parameters(about: Mapping[str, Any], params: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return the parameters with their defaults, and with their values here if any differs."""
    # Ordering hardware is set up as part of a design.
    section = "design" if about["kind"] == "order" else about["kind"]
    heads = ["default"]
    if any(param["value"] != param["default"] for param in params):
        heads = ["here", "default"]
    keys = {"here": "value", "default": "default"}
    rows = []
    for param in params:
        accepted = " | ".join(param.get("choices") or []) or text.word(param.get("range"))
        doc = param.get("doc", "")
        name = f"{section}.{param['name']}"
        told = [text.word(param[keys[head]]) for head in heads]
        rows.append([name, *told, f"{doc} [{accepted}]"])
    return text.columns(["name", *heads, "what [accepted]"], rows, width)


def _difference(about: Mapping[str, Any], width: int) -> str:
    """Return two machines side by side, as far as they differ."""
    left, right, rows = about["left"], about["right"], about["rows"]
    title = f"machines {left} and {right}: {len(rows)} of {about['parameters']} fields differ"
    if not rows:
        return title
    table = [
        [
            _key(row),
            text.word(row["left"]),
            text.word(row["right"]),
            f"{row['doc']} ({row['left_source']} / {row['right_source']})",
        ]
        for row in rows
    ]
    headers = ["field", left, right, "what (sources)"]
    return f"{title}\n\n{text.columns(headers, table, width)}"


def _key(row: Mapping[str, Any]) -> str:
    return f"{row['section']}.{row['key']}"


def _value(row: Mapping[str, Any]) -> str:
    """Return a value, with the cycles that its source gives if it gives those."""
    value, written = text.word(row["value"]), row.get("written") or ""
    return f"{value} ({written})" if written.endswith("cycles") else value


def _described(row: Mapping[str, Any]) -> str:
    accepted = f" [{row['range']}]" if row.get("range") else ""
    return f"{row.get('doc', '')}{accepted} ({row.get('source')})"
