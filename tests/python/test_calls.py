"""What Python calls take, and the sentence for what they do not."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import indelible
from indelible.arguments import listed
from indelible.cli.parser import COMMANDS, module_of


@pytest.mark.parametrize("name", sorted({*COMMANDS} & {*indelible.__all__} - {"native"}))
def test_a_call_has_what_its_command_has_without_being_told(name: str) -> None:
    parser = argparse.ArgumentParser()
    module_of(name).add_options(parser)
    # A command says itself that it needs what has no default there.
    nothing = (None, [], inspect.Parameter.empty)
    told = vars(parser.parse_known_args([])[0])
    for word, parameter in inspect.signature(getattr(indelible, name)).parameters.items():
        if told.get(word) in nothing:
            continue
        default = parameter.default
        own = [default] if isinstance(told[word], list) and isinstance(default, str) else default
        assert told[word] == (list(own) if isinstance(own, tuple) else own), word


def test_a_comparison_of_nothing_in_particular_is_that_of_the_command(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    rows = json.loads(command("compare", "--json", "--no-crash")[1])["rows"]
    assert indelible.compare(crash=False).json()["rows"] == rows
    assert len(rows) == 3 * 4


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"cores": "2"}, "`cores` must be a whole number from 1 up, not '2'"),
        ({"cores": -1}, "`cores` must be a whole number from 1 up, not -1"),
        ({"cores": 0}, "`cores` must be a whole number from 1 up, not 0"),
        ({"txs": 2**63}, "`txs` is too large: 9223372036854775808"),
        ({"txs": 0}, "`txs` must be a whole number from 1 up, not 0"),
        ({"cores": True}, "`cores` must be a whole number"),
        ({"txs": 2.5}, "`txs` must be a whole number"),
        ({"seed": -1}, "`seed` must be a whole number from 0"),
        ({"machine": None}, "`machine` must be a name, not None"),
        ({"workload": ["hash"]}, "`workload` must be a name, not ['hash']"),
        ({"set": "design.entries=4"}, "settings must be a mapping such as {'design.entries': 4}"),
        ({"set": ["design.entries=4"]}, "settings must be a mapping"),
        ({"set": {1: 2}}, "settings must be a mapping such as {'design.entries': 4}"),
        ({"seed": None}, "`seed` must be a whole number from 0 up, not None"),
        ({"exact": "no"}, "`exact` must be True or False, not 'no'"),
        ({"epochs": 1}, "`epochs` must be True or False, not 1"),
        ({"sql": 5}, "`sql` must be a name, not 5"),
        ({"set": [["design.entries", 4, 5]]}, "settings must be a mapping"),
        ({"set": 5}, "or such pairs, not 5"),
        ({"design": ["silo"]}, "`design` must be a name, not ['silo']"),
        ({"machine": "m\udce4.toml"}, "`machine` must be text in UTF-8, not 'm\\udce4.toml'"),
    ],
)
def test_a_call_with_the_wrong_types_is_a_sentence(
    fake: ModuleType, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(indelible.InputError) as error:
        indelible.run(**({"design": "silo", "workload": "hash"} | asked))
    assert sentence in str(error.value)
    assert fake.asked == []


SILO, HASH = ["silo"], ["hash"]
PROGRAM = ["./program", "pool"]

#: Calls, and what the sentence says.
WRONG_TYPES: list[tuple[Callable[[], object], str]] = [
    (lambda: indelible.list(5), "`kind` must be a name, not 5"),
    (lambda: indelible.explain(5), "`name` must be a name, not 5"),
    (lambda: indelible.explain("tiny", diff=5), "`diff` must be a name, not 5"),
    (lambda: indelible.explain("silo", cores="x"), "`cores` must be a whole number"),
    (lambda: indelible.battery(cores="x"), "`cores` must be a whole number"),
    (lambda: indelible.battery(machine=5), "`machine` must be a name, not 5"),
    (lambda: indelible.battery(5), "`designs` must be a list of names, not 5"),
    (lambda: indelible.characterize([5]), "`workloads` must be a list of names, not [5]"),
    (lambda: indelible.compare(None, HASH), "`designs` must be a list of names, not None"),
    (lambda: indelible.compare(SILO, HASH, cores="12"), "`cores` must be a whole number"),
    (lambda: indelible.compare(SILO, HASH, cores=[[1]]), "`cores` must be a whole number"),
    (lambda: indelible.compare(SILO, HASH, metric=["x"]), "`metric` must be a name, not ['x']"),
    (lambda: indelible.compare(SILO, HASH, normalize=5), "`normalize` must be a name, not 5"),
    (lambda: indelible.compare({"silo"}, HASH), "`designs` must be a list, not a set, which"),
    (lambda: indelible.why(SILO, frozenset(HASH)), "`workloads` must be a list, not a set"),
    (
        lambda: indelible.compare("silo,lad", HASH),
        "must be a list: ['silo', 'lad'], not 'silo,lad'",
    ),
    (
        lambda: indelible.sweep(SILO, ["hash,btree"], {}),
        "`workloads` must be a list: ['hash', 'btree']",
    ),
    (
        lambda: indelible.sweep(SILO, HASH, None),
        "`vary` must be a mapping such as {'design.entries'",
    ),
    (lambda: indelible.sweep(SILO, HASH, ["cores=1,2"]), "`vary` must be a mapping such as"),
    (lambda: indelible.sweep(SILO, HASH, {1: [2]}), "`vary` must be a mapping such as"),
    (
        lambda: indelible.sweep(SILO, HASH, {"cores": {1, 2}}),
        "`cores` must take its values from a list",
    ),
    (lambda: indelible.reproduce(5), "`paper` must be a name, not 5"),
    (lambda: indelible.reproduce("silo", txs="x"), "`txs` must be a whole number"),
    (lambda: indelible.litmus(orders=None), "`orders` must be a list of names, not None"),
    (lambda: indelible.litmus(5), "`files` must be a list of names, not 5"),
    (lambda: indelible.litmus(["a", 5]), "`files` must be a list of names, not ['a', 5]"),
    (lambda: indelible.litmus(orders=[5]), "`orders` must be a list of names, not [5]"),
    (lambda: indelible.crash("silo", "hash", without=3), "`without` must be a name, not 3"),
    (
        lambda: indelible.crash("silo", "hash", nested=None),
        "`nested` must be True or False, not None",
    ),
    (lambda: indelible.crash("silo", "hash", keep=3), "`keep` must be a name, not 3"),
    (lambda: indelible.crash("silo", "hash", mutants=0), "or the name of a rule, not 0"),
    (lambda: indelible.trace("silo", "hash", without=3), "`without` must be a name, not 3"),
    (lambda: indelible.trace("silo", "hash", address=1.5), "`address` must be a whole number"),
    (lambda: indelible.compare(SILO, HASH, crash="no"), "`crash` must be True or False, not 'no'"),
    (lambda: indelible.compare(SILO, HASH, native=1), "`native` must be True or False, not 1"),
    (lambda: indelible.compare(SILO, HASH, exact=1), "`exact` must be True or False, not 1"),
    (lambda: indelible.compare(SILO, HASH, seed=None), "`seed` must be a whole number from 0 up"),
    (lambda: indelible.sweep(SILO, HASH, {"cores": 1}, exact=1), "`exact` must be True or False"),
    (lambda: indelible.characterize(HASH, seed=None), "`seed` must be a whole number from 0 up"),
    (lambda: indelible.bench(quick=1), "`quick` must be True or False, not 1"),
    (lambda: indelible.probe(curves=1), "`curves` must be True or False, not 1"),
    (lambda: indelible.native.logging(quick=1), "`quick` must be True or False, not 1"),
    (lambda: indelible.native.logging(seed=None), "`seed` must be a whole number from 0 up"),
    (lambda: indelible.native.logging(threads=[0]), "`threads` must be a whole number from 1 up"),
    (lambda: indelible.litmus(seed="x"), "`seed` must be a whole number"),
    (
        lambda: indelible.run("silo", "hash", set={"a.b": "\udcff"}),
        "`set` must be text in UTF-8, not '",
    ),
    (lambda: indelible.explain("silo", {"\udcff.b": 1}), "`set` must be text in UTF-8, not '"),
    (lambda: indelible.battery(set={"a.b": "\udcff"}), "`set` must be text in UTF-8, not '"),
    (lambda: indelible.sweep(SILO, HASH, {"a.b": "\udcff"}), "`vary` must be text in UTF-8, not '"),
    (lambda: indelible.sweep(SILO, HASH, {"\udcff": 1}), "`vary` must be text in UTF-8, not '"),
    (
        lambda: indelible.trace("silo", "hash", start="\udcff"),
        "`start` must be text in UTF-8, not '",
    ),
    (
        lambda: indelible.trace("silo", "hash", length="\udcff"),
        "`length` must be text in UTF-8, not '",
    ),
    (lambda: indelible.trace("silo", "hash", address="\udcff"), "`address` must be text in UTF-8"),
    (lambda: indelible.run("silo", sql="a\0b"), "`sql` must be a name, not 'a\\x00b'"),
    (lambda: indelible.record(PROGRAM, ""), "`out` must name a file; it is an empty string"),
    (lambda: indelible.record(PROGRAM, "."), "`out` .: is a directory"),
    (lambda: indelible.record(PROGRAM, "no/a.trace"), "there is no directory `no`; make it first"),
    (
        lambda: indelible.explore(PROGRAM, before=3),
        "`before` must be a command as one text, not 3; write 'python3 verify.py'",
    ),
    (
        lambda: indelible.crash("silo", "replay", check=["python3", "my chk.py"]),
        """as one text, not ['python3', 'my chk.py']; write "python3 'my chk.py'\"""",
    ),
    (
        lambda: indelible.explore(PROGRAM, seconds="1"),
        "`seconds` must be a number above 0, not '1'",
    ),
    (lambda: indelible.explore(PROGRAM, seconds=0), "`seconds` must be a number above 0, not 0"),
    (lambda: indelible.cc("-O2 x.c"), "`arguments` must be a list of words such as"),
    (lambda: indelible.cc([], 3), "`compiler` must be a name, not 3"),
]

#: What `record` and `explore` take alike, and what the sentence says.
RECORDED: list[tuple[dict[str, Any], str]] = [
    ({"command": []}, "`command` must name a program, not []"),
    ({"command": [""]}, "`command` must name a program, not ['']"),
    (
        {"command": "program pool"},
        "must be a list of words such as ['./program', 'pool'], not 'pro",
    ),
    ({"command": [3]}, "`command` must be a list of words such as ['./program', 'pool'], not [3]"),
    (
        {"command": ["a\0b"]},
        "a word of `command` must not contain a NUL: 'a\\x00b'",
    ),
    ({"out": 3}, "`out` must be a name, not 3"),
    ({"pool": 3}, "`pool` must be a name, not 3"),
    ({"pool": ""}, "`pool` must name a file; it is an empty string"),
    ({"loads": 0}, "`loads` must be True or False, not 0"),
    ({"unseen": "no"}, "`unseen` must be True or False, not 'no'"),
    ({"most": -1}, "`most` must be a whole number from 1 up, not -1"),
    ({"most": "1MiB"}, "`most` must be a whole number from 1 up, not '1MiB'"),
    ({"seed": -1}, "`seed` must be a whole number from 0 up, not -1"),
    ({"seed": "a"}, "`seed` must be a whole number from 0 up, not 'a'"),
]


@pytest.mark.parametrize(("asked", "sentence"), RECORDED)
@pytest.mark.parametrize("call", [indelible.record, indelible.explore])
def test_what_is_recorded_is_asked_for_in_the_right_types(
    call: Callable[..., object], asked: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    where = tmp_path / "a.trace" if call is indelible.record else tmp_path
    with pytest.raises(indelible.InputError) as error:
        call(**({"command": PROGRAM, "out": where} | asked))
    assert sentence in str(error.value)


@pytest.mark.parametrize(("call", "sentence"), WRONG_TYPES)
def test_every_call_with_a_wrong_type_is_a_sentence(
    fake: ModuleType, call: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(indelible.InputError) as error:
        call()
    assert sentence in str(error.value)
    assert fake.asked == []


def test_any_iterable_will_do(fake: ModuleType) -> None:
    for cores in ({1, 2}, (count for count in (1, 2, 1)), range(1, 3)):
        compared = indelible.compare(iter(SILO), iter(HASH), cores=cores, crash=False)
        assert compared.cores == (1, 2)
    indelible.run("silo", "hash", set=(pair for pair in [("pm.size", 1)]))
    assert fake.asked[-1][1]["settings"] == {"pm.size": "1"}


def test_files_of_litmus_tests_may_be_a_list(fake: ModuleType, tmp_path: Path) -> None:
    one, other = (tmp_path / name for name in ("a.litmus", "b.litmus"))
    for file in (one, other):
        file.write_text("thread\n", encoding="utf-8")
    for files in ([[one, str(other)]], [one, other]):
        indelible.litmus(*files)
        named = [path for path, _ in fake.asked[-1][1]["tests"]]
        assert named == [str(one), str(other)]


def test_nothing_to_run_is_a_sentence(fake: ModuleType) -> None:
    for asked in (([], ["hash"]), (["silo"], [])):
        with pytest.raises(indelible.InputError, match="there is nothing to run"):
            indelible.compare(*asked)
    with pytest.raises(indelible.InputError, match="`cores` is an empty list"):
        indelible.compare(["silo"], ["hash"], cores=[])
    with pytest.raises(indelible.InputError, match="`points` must be a whole number"):
        indelible.crash("silo", "hash", points=-1)
    assert fake.asked == []


def test_what_is_true_is_yes_and_paths_are_names(fake: ModuleType) -> None:
    indelible.run("silo", "hash", Path("silo"), set={"workload.straddle": True})
    assert fake.asked[-1][1]["settings"] == {"workload.straddle": "yes"}
    assert fake.asked[-1][1]["machine"] == "silo"


#: What a call is told by a class, and by a path.
CLASSES = ("design", "designs", "normalize")
PATHS = (*CLASSES, "machine", "sql", "ycsb", "replay", "keep", "out")


@pytest.mark.parametrize(
    "name",
    [
        "battery",
        "bench",
        "characterize",
        "compare",
        "crash",
        "explore",
        "reproduce",
        "run",
        "sweep",
        "trace",
        "why",
    ],
)
def test_hints_allow_the_classes_and_paths_that_calls_take(name: str) -> None:
    """As `compare(["silo", Mine], ...)` of docs/design.md, in an editor that looks at types."""
    call = getattr(indelible, name)
    hints = {
        key: str(parameter.annotation)
        for key, parameter in inspect.signature(call, eval_str=True).parameters.items()
    }
    for words, hint in ((CLASSES, "type"), (PATHS, "PathLike[str]")):
        assert [key for key in words if key in hints and hint not in hints[key]] == []


class Whole:
    """A whole number of another library, which JSON does not know."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return str(self.value)


def test_numbers_of_any_library_and_paths_are_stored_as_ours(fake: ModuleType) -> None:
    two, machine = Whole(2), Path("silo")
    json.dumps(indelible.characterize(HASH, machine, cores=two, txs=two, seed=two))
    compared = indelible.compare(SILO, HASH, machine, cores=two, txs=two, seed=two, crash=False)
    vary = {"design.entries": [two]}
    swept = indelible.sweep(SILO, HASH, vary, machine, cores=two, txs=two, seed=two, seeds=two)
    crashed = indelible.crash(*SILO, *HASH, machine, points=two, lives=two, seed=two)
    for answer in (compared, swept, crashed):
        json.dumps(answer.json())
    assert (compared.machine, swept.machine) == ("silo", "silo")
    assert (swept.seeds, crashed.campaign.points, crashed.campaign.lives) == ((2, 3), 2, 2)
    traced = indelible.trace(*SILO, *HASH, machine, event=two, address=two)
    assert (traced.recording.event, traced.recording.address) == (2, "0x2")
    assert listed("machines", machine) == ("silo",)
    json.dumps(indelible.native.logging(entries=[two], threads=two, seed=two).json())


def test_what_is_true_may_be_of_numpy(fake: ModuleType) -> None:
    numpy = pytest.importorskip("numpy")
    yes, no = numpy.array([True, False])
    run = indelible.run("silo", "hash", exact=yes, epochs=no, set={"core.clwb_retains": no})
    request = fake.asked[-1][1]
    assert (request["exact"], "epochs" in request) == (True, False)
    assert request["settings"] == {"core.clwb_retains": "no"}
    assert run.command.endswith("--set core.clwb_retains=no --exact")
    swept = indelible.sweep(SILO, HASH, {"core.clwb_retains": [yes, no]}, exact=yes)
    assert swept.vary == {"core.clwb_retains": ("yes", "no")}
    assert indelible.crash("silo", "hash", nested=no).campaign.nested is False
    with pytest.raises(indelible.InputError, match="`exact` must be True or False"):
        indelible.run("silo", "hash", exact=numpy.array([True]))
    with pytest.raises(indelible.InputError, match="`exact` must be True or False"):
        indelible.run("silo", "hash", exact=numpy.int64(1))


def test_pairs_of_settings_may_be_lists(fake: ModuleType) -> None:
    indelible.run("silo", "hash", set=[["silo.entries", 10], ("pm.size", 1)])
    assert fake.asked[-1][1]["settings"] == {"design.entries": "10", "pm.size": "1"}
