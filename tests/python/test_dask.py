"""Jobs on the workers of a Dask cluster: the same answers, and sentences where there is none."""

from __future__ import annotations

import _thread
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import dask
import pytest
from distributed import Client, LocalCluster

import indelible
from conftest import needs_core, refused
from indelible import cluster, errors, experiment, extension, pool

Command = Callable[..., tuple[int, str, str]]

#: Longer than any of it takes.
LIMIT_SECONDS = 60

#: What of an answer is of the computer that gave it.
OF_THE_HOST = ("host", "seconds", "points_per_s")

#: Small runs.
SMALL = {"machine": "tiny", "txs": 20, "set": {"workload.items": 8}}

#: A machine with the name of another, and with times that become cycles of the clock that is set.
MACHINE = """\
extends = "{base}"
[pm]
tWRITE = "33ns"
"""


def local(**more: object) -> LocalCluster:
    asked = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    return LocalCluster(**{**asked, "protocol": "tcp://", **more})


@pytest.fixture(autouse=True)
def hears_ctrl_c() -> Iterator[None]:
    """Have this process hear Ctrl-C, also where a shell has it ignored, as behind `&`."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def processes() -> Iterator[LocalCluster]:
    """Two workers that are processes, so that nothing is answered here by mistake."""
    with local(n_workers=2, processes=True) as found:
        yield found


@pytest.fixture
def here() -> Iterator[LocalCluster]:
    """A worker that is a thread of this process, which sees what a test has replaced."""
    with local(processes=False) as found:
        yield found


@pytest.fixture
def dying() -> Iterator[LocalCluster]:
    """A worker that is a process, whose job is given up when it has died once."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        local(processes=True) as found,
    ):
        yield found


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the simulator of this process answer nothing."""

    def asked(spec: str, control: object) -> str:
        raise AssertionError(f"it is run here: {spec}")

    for verb in ("run", "crash"):
        monkeypatch.setattr(extension.core, verb, asked)


def on_all(found: LocalCluster, code: str) -> None:
    """Have all workers do something, as text: a function of a test is none of theirs."""
    with Client(found, set_as_default=False) as client:
        client.run(exec, code, {})


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come to pass"
        time.sleep(0.01)


def plain(value: object) -> object:
    """Return what of an answer does not depend on who gave it."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in OF_THE_HOST}
    return [plain(part) for part in value] if isinstance(value, list) else value


def text(answer: object) -> str:
    return json.dumps(plain(answer.json()))


CALLS: dict[str, Callable[..., object]] = {
    "compare": lambda **at: indelible.compare(["native", "silo"], ["queue"], **SMALL, **at),
    "sweep": lambda **at: indelible.sweep(
        ["silo"], ["queue", "hash"], {"design.entries": [4, 20]}, seeds=2, **SMALL, **at
    ),
    "reproduce": lambda **at: indelible.reproduce(
        "loc", txs=5, set={"workload.items": 100}, vary={"seed": [1, 2]}, **at
    ),
    "crash": lambda **at: indelible.crash("silo", "scribble", txs=20, lives=3, **at),
    "violated": lambda **at: indelible.crash(
        "silo", "scribble", txs=20, without="undo_newest_first", **at
    ),
}


@needs_core
@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_that_of_this_computer(
    processes: LocalCluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    call = CALLS[name]
    expected = text(call())
    for verb in ("run", "crash"):
        monkeypatch.delattr(extension.core, verb)
    assert text(call(dask=processes.scheduler_address)) == expected


@needs_core
def test_the_command_names_a_scheduler_file(
    processes: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], nothing_here: None
) -> None:
    from indelible.cli import main

    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": processes.scheduler_address}))
    words = ["crash", "--design", "silo", "--workload", "scribble", "--txs", "5", "--json"]
    assert main([*words, "--dask", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["violations"] == []


@needs_core
def test_a_client_of_the_users_is_left_open(processes: LocalCluster, nothing_here: None) -> None:
    with Client(processes, set_as_default=False) as client:
        assert indelible.crash("silo", "scribble", txs=5, dask=client).passed
        assert client.status == "running"


@needs_core
@pytest.mark.parametrize("base", ["tiny", "silo"])
def test_a_machine_file_goes_with_its_jobs(
    processes: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    """Of a file that is only here, and extends another that is only here."""
    monkeypatch.chdir(tmp_path)
    Path("base.toml").write_text(MACHINE.format(base=base))
    Path("silo.toml").write_text('extends = "base.toml"\n[controller]\nwpq = 8\n')
    asked = {"txs": 20, "cores": 2, "set": {"core.clk_domain": "3GHz", "workload.items": 8}}
    calls = [
        lambda **at: indelible.compare(["silo"], ["queue"], "./silo.toml", **asked, **at),
        lambda **at: indelible.crash("silo", "queue", "./silo.toml", points=9, **asked, **at),
    ]
    for call in calls:
        found, expected = text(call(dask=processes.scheduler_address)), text(call())
        assert found == expected
        assert '"machine": "silo (./silo.toml)"' in found
    plainly = indelible.compare(["silo"], ["queue"], base, **asked)
    assert plain(plainly.json()["rows"]) != plain(json.loads(text(calls[0]()))["rows"])


@needs_core
@pytest.mark.parametrize(
    "setting", [{"design.entries": 0}, {"pm.tWRITE": "7"}, {"core.frequency": "9"}]
)
def test_what_a_worker_refuses_is_the_same_sentence(
    processes: LocalCluster, tmp_path: Path, setting: dict[str, object]
) -> None:
    file = tmp_path / "far.toml"
    file.write_text(MACHINE.format(base="tiny"))
    for machine in ("tiny", str(file)):
        at = {"machine": machine, "set": setting}
        said = refused(lambda at=at: indelible.sweep(["silo"], ["queue"], {"seed": 1}, **at))
        at["dask"] = processes.scheduler_address
        assert (
            refused(lambda at=at: indelible.sweep(["silo"], ["queue"], {"seed": 1}, **at)) == said
        )
    file.write_text(MACHINE.format(base="tiny").replace("33ns", "33"))
    at = {"machine": str(file), "dask": processes.scheduler_address}
    assert refused(lambda: indelible.crash("silo", "queue", **at)).startswith(f"{file}:3: ")


@needs_core
def test_a_bug_names_the_command_that_repeats_it(
    here: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension.core, "run", lambda *_: extension.core.fail("it broke"))
    with pytest.raises(indelible.InternalError) as error:
        indelible.compare(["native"], ["queue"], **SMALL, dask=here.scheduler_address)
    assert "it broke" in str(error.value)
    assert "\nrepeat with: indelible run --design native --workload queue" in str(error.value)


@needs_core
def test_that_a_worker_has_no_room_is_told_from_other_mistakes(
    here: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(spec: str, control: object) -> str:
        raise errors.HostError("the host has no room")

    monkeypatch.setattr(extension.core, "run", refused)
    with pytest.raises(errors.HostError, match="has no room"):
        indelible.compare(["native"], ["queue"], **SMALL, dask=here.scheduler_address)


@needs_core
def test_a_campaign_has_no_more_threads_than_its_worker_says(
    here: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[tuple[object, ...]] = []
    make = extension.core.Control

    def control(*asked: object) -> object:
        threads.append(asked)
        return make(*asked)

    monkeypatch.setenv("INDELIBLE_JOBS", "1")
    monkeypatch.setattr(extension.core, "Control", control)
    asked = {"txs": 5, "mutants": "undo_newest_first", "dask": here.scheduler_address}
    assert indelible.crash("silo", "scribble", **asked).data["mutants"]
    assert threads == [(1,)]


@needs_core
def test_what_is_kept_is_not_sent(
    processes: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    submit = Client.submit

    def counted(*args: object, **more: object) -> object:
        sent.append(args)
        return submit(*args, **more)

    monkeypatch.setattr(Client, "submit", counted)
    at = {**SMALL, "keep": tmp_path, "dask": processes.scheduler_address}
    first = indelible.compare(["native", "silo"], ["queue"], **at)
    # Two runs, and the campaign of silo.
    assert (len(sent), len([*tmp_path.iterdir()])) == (3, 3)
    more = indelible.compare(["native", "silo", "lad"], ["queue"], **at)
    assert len(sent) == 5
    assert more.json()["rows"][0] == first.json()["rows"][0]
    # What came from a worker is an answer like any other.
    del at["dask"]
    assert indelible.compare(["native", "silo"], ["queue"], **at).json() == first.json()
    assert len(sent) == 5


@needs_core
def test_what_has_come_back_is_kept_by_no_worker(
    here: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, left, real = [], [], extension.core.run

    def run(spec: str, control: extension.core.Control) -> str:
        begun.append(spec)
        if len(begun) == 9:
            end = time.monotonic() + LIMIT_SECONDS / 6
            while len(here.scheduler.tasks) > 1 and time.monotonic() < end:
                time.sleep(0.01)
            left.append(len(here.scheduler.tasks))
        return real(spec, control)

    monkeypatch.setattr(extension.core, "run", run)
    at = {**SMALL, "crash": False, "dask": here.scheduler_address}
    assert len(indelible.sweep(["silo"], ["queue"], {"seed": "1:9:1"}, **at).runs) == 9
    assert left == [1], "the one that runs"


@needs_core
def test_a_long_script_goes_too_and_few_beside_each_other(
    processes: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    trace = tmp_path / "long.trace"
    trace.write_text("begin\nstore 0x1000 1\ncommit\n" + ("#" + 99 * " " + "\n") * 110_000)
    asked = {"replay": str(trace), "crash": False, "cores": 1}
    address = processes.scheduler_address
    expected = text(indelible.compare(["silo"], ["replay"], **asked))
    assert text(indelible.compare(["silo"], ["replay"], **asked, dask=address)) == expected
    assert [str(one.message) for one in recwarn if "large graph" in str(one.message)] == []

    long = experiment.Experiment(
        "silo", "replay", script=experiment.Script("--replay", "a", 99 * "#")
    )
    jobs = [experiment.Experiment("silo", "hash"), long]
    with cluster.place_of(address) as place:
        assert place.at_once(jobs) == cluster.SENT_MAX
        for characters, count in ((990, 10), (1000, 10), (50, 1)):
            monkeypatch.setattr(cluster, "SENT_CHARACTERS_MAX", characters)
            assert place.at_once(jobs) == count


@needs_core
def test_another_simulator_is_refused(dying: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a worker that is there when the command begins, and of one that comes later."""
    on_all(dying, "from indelible import cluster\ncluster.simulator = lambda: '0.0.9 (abc)'")
    (address,) = dying.scheduler.workers
    sentence = (
        f"worker {address} has the simulator 0.0.9 (abc), and here it is {cluster.simulator()};"
        " install the same there and start the worker again"
    )
    at = {**SMALL, "dask": dying.scheduler_address}
    with monkeypatch.context() as patch:
        patch.delattr(Client, "submit")
        assert refused(lambda: indelible.compare(["silo"], ["queue"], **at)) == sentence
    monkeypatch.setattr(cluster.Cluster, "other", lambda _: None)
    # Also of a campaign, which is not `untested` for that.
    assert refused(lambda: indelible.crash("silo", "queue", dask=at["dask"])) == sentence
    assert refused(lambda: indelible.compare(["silo"], ["queue"], **at)) == sentence


@needs_core
def test_a_worker_without_indelible_is_named(
    dying: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_all(dying, "import sys; sys.modules['indelible'] = sys.modules['indelible.cluster'] = None")
    (address,) = dying.scheduler.workers
    at = {**SMALL, "dask": dying.scheduler_address}
    assert refused(lambda: indelible.compare(["silo"], ["queue"], **at)).startswith(
        f"worker {address} has no Indelible ("
    )
    # As of one that comes when the others have been asked.
    found = iter([None, "it is named"])
    monkeypatch.setattr(cluster.Cluster, "other", lambda _: next(found))
    assert refused(lambda: indelible.crash("silo", "queue", dask=dying.scheduler_address)) == (
        "it is named"
    )


@needs_core
def test_a_job_of_which_workers_die_is_named(dying: LocalCluster) -> None:
    """It is no campaign that cannot be had on the small machine: `untested` would hide it."""
    on_all(
        dying,
        "import os\nfrom indelible import extension\nextension.core.crash = lambda *_: os._exit(1)",
    )
    at = {**SMALL, "dask": dying.scheduler_address}
    said = refused(lambda: indelible.compare(["silo"], ["queue"], **at))
    assert said.startswith("1 worker died of the same job, last tcp://")
    # A worker takes along what waits for it, and Dask cannot tell that from what it died of.
    assert re.search(": indelible (crash|run) --design silo --workload queue --machine tiny", said)
    assert "\n" not in said


@needs_core
def test_ctrl_c_returns_what_has_ended_and_begins_nothing(
    here: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    go_on, real = threading.Event(), extension.core.run

    def run(spec: str, control: extension.core.Control) -> str:
        begun.append(spec)
        if len(begun) == 2:
            # When the first one has come back.
            threading.Timer(0.3, _thread.interrupt_main).start()
        if len(begun) > 1:
            go_on.wait(LIMIT_SECONDS)
        return real(spec, control)

    monkeypatch.setattr(extension.core, "run", run)
    with Client(here, set_as_default=False) as client:
        with pytest.raises(indelible.Interrupted) as caught:
            indelible.sweep(
                ["silo"], ["queue"], {"seed": "1:50:1"}, crash=False, **SMALL, dask=client
            )
        partial = caught.value.partial
        assert (partial.interrupted, len(partial.runs)) == (True, 1)
        # The worker has begun one, and forgets what it has not.
        (worker,) = here.workers.values()
        wait_until(lambda: not here.scheduler.tasks and len(worker.state.tasks) == 1)
        go_on.set()
        wait_until(lambda: not worker.state.tasks)
        assert len(begun) == 2


@needs_core
def test_a_job_that_is_given_up_before_it_is_sent_is_not_waited_for(here: LocalCluster) -> None:
    job = experiment.Experiment("silo", "queue", "tiny", txs=5)
    with cluster.place_of(here.scheduler_address) as place:
        (control,) = place.controls([job])
        control.cancel()
        with pytest.raises(pool.Lost):
            job.start(control)
        (control,) = place.controls([job])
        assert job.start(control)["workload"] == "queue"


@needs_core
@pytest.mark.alone
def test_giving_up_many_jobs_takes_less_than_a_second(
    here: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, interrupted = threading.Event(), []

    def run(spec: str, control: extension.core.Control) -> str:
        go_on.wait(LIMIT_SECONDS)
        raise indelible.InputError("nobody hears it")

    def interrupt() -> None:
        wait_until(lambda: len(here.scheduler.tasks) == 300)
        interrupted.append(time.monotonic())
        _thread.interrupt_main()

    monkeypatch.setattr(extension.core, "run", run)
    threading.Thread(target=interrupt, daemon=True).start()
    at = {**SMALL, "crash": False, "dask": here.scheduler_address}
    with pytest.raises(indelible.Interrupted):
        indelible.sweep(["silo"], ["queue"], {"seed": "1:300:1"}, **at)
    took = time.monotonic() - interrupted[0]
    go_on.set()
    # A second, on a computer that does nothing else.
    assert took < 3


@needs_core
def test_a_scheduler_that_goes_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one without workers, which goes when it has the job."""
    file = tmp_path / "scheduler.json"
    words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", *words], stderr=subprocess.DEVNULL
    )
    submit = Client.submit

    def last(*args: object, **more: object) -> object:
        sent = submit(*args, **more)
        process.kill()
        return sent

    monkeypatch.setattr(Client, "submit", last)
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        said = refused(lambda: indelible.compare(["native"], ["queue"], **SMALL, dask=file))
    finally:
        process.kill()
        process.wait()
    assert said == f"the scheduler {address} has gone or dropped a job"


@needs_core
def test_without_workers_it_says_so_and_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.1)
    told: list[str] = []
    update = pool.Meter.update

    def heard(meter: pool.Meter, state: str) -> None:
        told.append(state)
        if "waiting for a worker" in told:
            found.scale(1)
        update(meter, state)

    monkeypatch.setattr(pool.Meter, "update", heard)
    with local(n_workers=0, processes=False) as found:
        asked = {**SMALL, "txs": 2000, "dask": found.scheduler_address}
        answer = indelible.compare(["native"], ["queue"], **asked)
        assert not answer.interrupted
        said = f"indelible: {found.scheduler_address} has no worker yet; waiting\n"
    assert capsys.readouterr().err.count(said) == 1


def test_a_place_that_is_none_is_a_sentence(command: Command) -> None:
    words = ["compare", "--designs", "native", "--workloads", "hash", "--dask"]
    start = time.monotonic()
    for address, why in (
        ("tcp://127.0.0.1:1", "Timed out"),
        ("nowhere", "missing port"),
        ("", "missing port"),
    ):
        code, shown, complaints = command(*words, address)
        assert (code, shown, complaints.count("\n")) == (2, "", 1)
        assert f"no Dask scheduler answers at `{address}` ({why}" in complaints
    assert time.monotonic() - start < 10
    for other in (5, ["tcp://127.0.0.1:8786"]):
        said = refused(lambda other=other: indelible.compare(["native"], ["hash"], dask=other))
        assert said.startswith("`dask` is the address of a scheduler or a `distributed.Client`")


def test_without_distributed_it_says_what_to_install(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = refused(lambda: indelible.sweep(["silo"], ["hash"], {"seed": 1}, dask="tcp://head:8786"))
    assert said == "`dask` needs distributed: python -m pip install 'indelible[dask]'"


def test_a_program_of_the_users_is_not_sent(command: Command) -> None:
    words = ["crash", "--design", "silo", "--workload", "hash", "--check", "./verify"]
    code, _, complaints = command(*words, "--dask", "tcp://127.0.0.1:1")
    assert (code, complaints.count("\n")) == (2, 1)
    assert "`dask` does not work with `check` or `images`" in complaints


@needs_core
def test_a_design_in_python_is_not_sent(here: LocalCluster, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    indelible.new("design", str(mine))
    at = {**SMALL, "dask": here.scheduler_address}
    said = refused(lambda: indelible.compare(["native", str(mine)], ["queue"], **at))
    assert said.startswith("`dask` runs no design in Python, which may import what is only here: ")


def test_nobody_waits_for_distributed_who_asks_for_no_cluster() -> None:
    code = "import sys, conftest, indelible.verbs.compare; sys.exit('distributed' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0
