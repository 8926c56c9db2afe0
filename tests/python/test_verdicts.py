"""What the crash campaign beside a speed is of. None is run."""

from __future__ import annotations

from conftest import needs_core
from indelible import jobs
from indelible.experiment import Experiment
from indelible.settings import Pairs, of_cell

pytestmark = needs_core


def carried(design: str, *settings: tuple[str, str]) -> Pairs:
    """Return what the campaign of one of two designs is set to, where that was set of a run."""
    names = ("undo@x86", "redo@x86")
    own = of_cell(settings, design, "hash", (*names, "hash"))
    asked = Experiment(design, "hash", settings=own)
    (job,) = jobs.sampled({(design, "hash", None): asked}, {})
    return job.experiment.settings


def test_a_verdict_is_of_what_survives_on_the_machine_of_its_design() -> None:
    asked = ("redo@x86.controller.domain", "media")
    assert carried("redo@x86", asked) == (("controller.domain", "media"),)
    assert carried("undo@x86", asked) == ()


def test_a_verdict_is_of_what_survives_by_whichever_name_that_was_set() -> None:
    asked = (("controller.battery", "1%"), ("pm.capacity", "8GiB"))
    fields = (("pm.device_size", "8GiB"), ("controller.battery_perc", "1%"))
    assert carried("redo@x86", *asked) == fields
