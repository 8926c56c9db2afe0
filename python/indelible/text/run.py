"""One run as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indelible.commands import flag, line, reads, sets
from indelible.ignored import HEEDS, is_ignored
from indelible.jobs import portable
from indelible.latencies import is_told
from indelible.metrics import transactions
from indelible.results.run import Run
from indelible.text import (
    BLANK,
    command,
    digits,
    joules,
    paragraph,
    percentages,
    plural,
    quantity,
    run_title,
    seconds,
    terminal_width,
)
from indelible.text import usage as usage_text

#: The percentiles that are shown of a distribution, each if there are enough commits for one to be
#: slower.
QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999)


def run(answer: Run, width: int | None = None) -> str:
    """Return one run: what it did, what it cost and where the time went."""
    width = width or terminal_width()
    row = answer.data
    count = transactions(row)
    latency = row["commit_latency_cycles"]
    lines = [run_title(row, answer.experiment.machine)]
    if row.get("cancelled"):
        lines.append("interrupted: this is what had been measured by then")

    def say(label: str, body: str) -> None:
        lines.append(paragraph(label, body, width))

    say("simulated", f"{row['core_model']} core, domain {row['domain']}")
    say(
        "throughput",
        f"{quantity(row['throughput_tx_per_s'], 'tx/s')}: {plural(count, 'transaction')}"
        f" in {seconds(row['simulated_s'])} of simulated time",
    )
    until = ", until durable" if row["durability"] == "asynchronous" else ""
    say("commit", f"{_latency(latency)} cycles{until}; durability {row['durability']}")
    if steps := latency.get("distribution"):
        told = [q for q in QUANTILES if is_told(q, count)]
        each = "  ".join(f"p{100 * q:g} {_quantile(steps, q):,}" for q in told)
        say("latencies", each or BLANK)
    say("core time", _shares(row["stalls"]))
    if accesses := usage_text.caches(row):
        say("caches", accesses)
        say("last level", usage_text.last_level(row))
    if ordered := usage_text.ordering(row, count):
        say("ordering", ordered)
    say("PM writes", _writes(row["pm_writes"], count))
    say("WPQ", usage_text.queue(row))
    took = usage_text.reads(row, "pm")
    say("PM reads", f"{_per(row['pm_reads'], count)} /tx" + (f"; {took}" if took else ""))
    say("PM banks", usage_text.banks(row, "pm"))
    if took := usage_text.reads(row, "dram"):
        say("DRAM", f"reads {took}; banks {usage_text.banks(row, 'dram')}")
    sizes = row["write_set"]
    said = [
        f"{what} {sizes[f'{what}_avg']:.1f}"
        + (f" (max {sizes[f'{what}_max']:,})" if f"{what}_max" in sizes else "")
        for what in ("words", "lines", "pages")
    ]
    say("write set", "  ".join(said) + " a transaction")
    if "epochs" in row:
        say("epochs", _epochs(row["epochs"]))
    # Cells that were neither read nor written took no energy.
    if energy := row["energy_uj"] / 1e6:
        each = f", {joules(energy / count)}/tx" if count else ""
        say("energy", f"{joules(energy)}{each}; {_shares(row['energy_by_uj'])}")
    counted = {name: count for name, count in row["design_counters"].items() if count}
    if counted:
        say("design", "  ".join(f"{_spaced(name)} {n:,}" for name, n in counted.items()))
    host = row["host"]
    say(
        "host",
        f"{quantity(host['mem_ops'], '').strip()} memory operations in"
        f" {seconds(host['seconds'])}: {quantity(host['mem_ops_per_s'], '/s')},"
        f" {host['peak_rss_mb']:,.0f} MB",
    )
    for note in row.get("notes") or []:
        say("note", str(note))
    lines.append(command("crash test", _crash_command(answer), width))
    lines.append(command("repeat", answer.command, width))
    return "\n".join(lines)


def _latency(latency: Mapping[str, float | None]) -> str:
    known = {name: latency[name] for name in ("p50", "p99", "max", "mean")}
    return "  ".join(
        f"{name} {BLANK if cycles is None else f'{cycles:,.0f}'}" for name, cycles in known.items()
    )


def _quantile(steps: Sequence[Sequence[float]], share: float) -> float:
    """Return the cycles that a share of all commits took at most."""
    return next(cycles for cycles, reached in steps if reached >= share)


def _crash_command(answer: Run) -> str:
    """Return the command of a campaign on the same experiment, on machine `tiny`.

    The design and the workload are as they are set, and what survives is what survives there.
    Of a trace whose transactions store nothing only a checker knows what is right, and only on a
    design that does not ignore its flushes and fences.
    """
    row, settings = answer.data, portable(answer.experiment)
    is_unsaid = row["workload"] == "replay" and not row["write_set"]["lines_max"]
    design = row["design"]
    if is_unsaid and is_ignored(row, answer.experiment):
        design = HEEDS
        settings = tuple(pair for pair in settings if not pair[0].startswith("design."))
    asked = [*flag("--design", design), *flag("--workload", row["workload"])]
    script = answer.experiment.script
    read = [*reads([script] if script else []), *sets(settings)]
    return line("crash", asked, read, ["--check", "COMMAND"] if is_unsaid else [])


def _shares(parts: Mapping[str, float]) -> str:
    """Return the parts of a sum in percent, the largest first."""
    shares = percentages(parts)
    ranked = sorted(shares, key=lambda name: -shares[name])
    stack = " | ".join(f"{_spaced(n)} {shares[n]:.1f}" for n in ranked if shares[n] >= 0.05)
    return f"{stack or BLANK} %"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _per(value: float, count: float) -> str:
    return digits(value / count) if count else BLANK


def _epochs(epochs: Mapping[str, Any]) -> str:
    shares = {
        "of one line": "singleton_share",
        "depend on their core's": "self_dependent_share",
        "on another's": "cross_dependent_share",
    }
    said = ", ".join(f"{100 * epochs[name]:.1f} % {what}" for what, name in shares.items())
    return f"{epochs['epochs_per_tx']:.1f} a transaction: {said}"


def _writes(writes: Mapping[str, Any], count: float) -> str:
    total = f"{_per(writes['wpq_bytes'], count)} B/tx accepted"
    media = (
        f"{_per(writes['media_lines'], count)} lines/tx and"
        f" {_per(writes['media_bits'], count)} bits/tx written to the media"
    )
    accepted, programmed = _parts(writes["by_class"], count), _parts(writes["bits_by_class"], count)
    return f"{total}{accepted}; {media}{programmed}"


def _parts(parts: Mapping[str, float], count: float) -> str:
    """Return what a sum consists of, but for what is less than a thousandth of it.

    Each part is for one of `count` transactions.
    """
    least = sum(parts.values()) / 1000
    named = ((_spaced(name), own) for name, own in parts.items() if own and own >= least)
    told = " + ".join(f"{name} {_per(own, count)}" for name, own in named)
    return f" = {told}" if told else ""
