"""What answers are in Python: what they print, draw, and know by which words."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from indelible.plots import comparison as comparison_plot
from indelible.plots import stacks as stacks_plot
from indelible.text.comparison import stubbed_tables
from indelible.views import RATIOS, VIEWS, based

SILO, HASH = ["silo"], ["hash"]


def test_every_answer_prints_what_its_command_does(fake: ModuleType) -> None:
    compared = indelible.compare(["native", "silo"], HASH, crash=False)
    answers = {
        "Batteries: ": indelible.battery(),
        "Write sets: ": indelible.characterize(HASH),
        "silo (design)": indelible.explain("silo"),
        "silo · hash": indelible.run("silo", "hash"),
        "Throughput relative to native": compared,
        "Throughput of silo relative to": indelible.sweep(SILO, HASH, {"cores": [1, 2]}),
    }
    for begin, answer in answers.items():
        assert str(answer).startswith(begin)
        assert answer._repr_html_().startswith(f"<pre>{begin}")
    texts = {name: getattr(compared, name)() for name in VIEWS if name != RATIOS}
    for name, told in texts.items():
        assert told.startswith(VIEWS[name].title(based(compared, name)))
    assert len({*texts.values(), str(compared)}) == len(VIEWS)


def test_the_number_of_cores_that_a_machine_has_stands_beside_others(fake: ModuleType) -> None:
    compared = indelible.compare(SILO, HASH, cores=[None, 2], crash=False)
    assert [row["cores"] for row in compared.json()["gmean"]] == [8, 2]
    assert compared.ratio(("silo", "hash", None)) == compared.ratio(("silo", "hash", 8)) == 1
    assert "8 cores" in str(compared)


def test_columns_of_one_name_stand_beside_each_other() -> None:
    rows = [["workload", "ratio", "ratio"], ["hash", "1.00", "2.00"]]
    (table,) = stubbed_tables(rows, 80, stub_columns=1)
    assert table.splitlines()[-1].split() == ["hash", "1.00", "2.00"]


def test_what_is_a_mapping_stays_one(fake: ModuleType) -> None:
    for answer in (indelible.battery(), indelible.characterize(HASH), indelible.explain("silo")):
        assert isinstance(answer, dict)
        assert json.loads(json.dumps(answer)) == answer


def test_what_there_is_to_name_is_a_list_with_the_json_of_its_command(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    for kind in ("machines", None):
        words = ["list"] if kind is None else ["list", kind]
        found = indelible.list(kind)
        assert isinstance(found, list)
        assert found.json() == {"rows": [*found]}
        assert command(*words, "--json")[1] == json.dumps(found.json(), indent=2) + "\n"
        assert command(*words)[1] == f"{found}\n"
        assert str(pickle.loads(pickle.dumps(found))) == str(found)
    machines = [{"kind": "machine", **row} for row in indelible.list("machines")]
    assert found.of_kinds()["machines"] == machines


def test_every_answer_has_the_object_of_its_json(fake: ModuleType) -> None:
    answers = [
        indelible.battery(),
        indelible.characterize(HASH),
        indelible.explain("silo"),
        indelible.run("silo", "hash"),
        indelible.crash("silo", "hash"),
        indelible.compare(SILO, HASH),
        indelible.sweep(SILO, HASH, {"cores": [1, 2]}),
        indelible.trace("silo", "hash"),
        indelible.litmus(),
        indelible.native.logging(),
    ]
    for answer in answers:
        assert json.loads(json.dumps(answer.json()))
    for kind in (indelible.Exploration, indelible.Recorded):
        assert kind({"rows": []}).json() == {"rows": []}


def test_answers_are_drawn_into_files(fake: ModuleType, tmp_path: Path) -> None:
    compared = indelible.compare(["native", "silo"], HASH, crash=False)
    swept = indelible.sweep(SILO, HASH, {"cores": [1, 2]})
    compared.save(tmp_path / "compared.svg")
    compared.save(tmp_path / "stalls.svg", view="stalls")
    swept.save(str(tmp_path / "swept.pdf"))
    assert "Core time of a transaction" in (tmp_path / "stalls.svg").read_text(encoding="utf-8")
    assert "Throughput" in (tmp_path / "compared.svg").read_text(encoding="utf-8")
    assert (tmp_path / "swept.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(
        indelible.InputError, match=r"x\.gif: the name of a figure must end in one of \.png"
    ):
        compared.save("x.gif")
    several = indelible.sweep(SILO, HASH, {"cores": [1, 2], "txs": [1, 2], "seed": [1, 2]})
    sentence = "a figure shows a sweep of one field or two, not of 3"
    with pytest.raises(indelible.InputError, match=sentence):
        several.save(tmp_path / "several.svg")


@pytest.mark.parametrize(
    "draw", [comparison_plot.figure, stacks_plot.stalls_figure, stacks_plot.writes_figure]
)
def test_a_figure_has_its_style_by_itself(fake: ModuleType, draw: object) -> None:
    compared = indelible.compare(["native", "silo"], HASH, crash=False)
    (axes,) = draw(compared).axes
    assert axes.yaxis.get_label().get_fontsize() == 8
    assert {label.get_fontsize() for label in axes.get_yticklabels()} == {8}
    assert not axes.spines["top"].get_visible()


def test_a_notebook_shows_text_and_no_markup(fake: ModuleType) -> None:
    class Own(indelible.Run):
        def __str__(self) -> str:
            return "a < b & c"

    assert Own({}, None)._repr_html_() == "<pre>a &lt; b &amp; c</pre>"


def test_cells_are_named_as_rows_have_them(fake: ModuleType) -> None:
    one = indelible.compare(["native", "silo"], HASH, crash=False)
    (row,) = [row for row in one.json()["gmean"] if row["design"] == "silo"]
    assert one.gmean("silo", row["cores"]) == one.gmean("silo") == row["value"]
    asked = indelible.compare(["native", "silo"], HASH, cores=8, crash=False)
    assert asked.gmean("silo", 8) == asked.gmean("silo", None) == row["value"]
    assert asked.ratio(("silo", "hash", None)) == asked.ratio(("silo", "hash", 8))
    swept = indelible.sweep(SILO, HASH, {"cores": [1, 10]})
    for point in ((10,), ["10"], 10, {"cores": 10}):
        assert swept.gmean(point, "silo") == swept.gmean(("10",), "silo") == pytest.approx(10)


def test_what_is_in_no_cell_is_a_sentence(fake: ModuleType) -> None:
    compared = indelible.compare(["native", "silo"], HASH, cores=[1, 8], crash=False)
    swept = indelible.sweep(SILO, HASH, {"cores": [1, 10]})
    wrong = {
        "there is no design 'silos' here; there are: silo, native": [
            lambda: compared.gmean("silos", 8),
            lambda: compared.verdict("silos", 8),
            lambda: compared.ratio(("silos", "hash", 8)),
        ],
        "there is no number of cores 2 here; there are: 1, 8": [
            lambda: compared.gmean("silo", 2),
            lambda: compared.value(("silo", "hash", 2)),
        ],
        "there is no number of cores 2 here; there are: 8": [
            lambda: indelible.compare("silo", HASH, cores=8, crash=False).gmean("silo", 2)
        ],
        "there is no number of cores '2' here; there are: 1, 8": [
            lambda: compared.gmean("silo", "2")
        ],
        "a cell must be (design, workload, cores), not ('silo', 'hash')": [
            lambda: compared.ratio(("silo", "hash")),
            lambda: compared.value(("silo", "hash"), 1),
        ],
        "a cell must be (design, workload, cores), not 'silo'": [lambda: compared.ratio("silo")],
        "a cell must be (point, design, workload), not ('silo', 'hash')": [
            lambda: swept.ratio(("silo", "hash"))
        ],
        "there is no seed '1' here; there are: 1": [lambda: compared.gmean("silo", 8, seed="1")],
        "a point must have cores, not ['core']": [lambda: swept.gmean({"core": 1}, "silo")],
        "a point must have cores, not ['cores', 'txs']": [
            lambda: swept.gmean({"cores": 1, "txs": 9}, "silo")
        ],
        "/tmp/of/nobody/x.svg: no such file or directory": [
            lambda: swept.save("/tmp/of/nobody/x.svg")
        ],
        "there is no number of cores None here; there are: 1, 8": [lambda: compared.gmean("silo")],
        "there is no workload 'hsah' here; there are: hash": [
            lambda: compared.ratio(("silo", "hsah", 8)),
            lambda: swept.ratio((1, "silo", "hsah")),
        ],
        "there is no seed 7 here; there are: 1": [lambda: compared.gmean("silo", 8, seed=7)],
        "there is no point ('2',) here; there are: ('1',), ('10',)": [
            lambda: swept.gmean((2,), "silo")
        ],
    }
    for sentence, calls in wrong.items():
        for call in calls:
            with pytest.raises(indelible.InputError) as error:
                call()
            assert str(error.value) == sentence


def test_answers_of_many_runs_say_alike_what_was_asked_for(fake: ModuleType) -> None:
    both, on = ["silo", "leaky"], ["hash", "btree"]
    for seeds in (1, 2):
        asked = {
            "designs": both,
            "workloads": on,
            "machine": "silo",
            "metric": "pm-writes",
            "seeds": [3, 4][:seeds],
        }
        same = {"cores": 2, "metric": "pm-writes", "seed": 3, "seeds": seeds}
        for answer in (
            indelible.compare(both, on, crash=False, **same),
            indelible.sweep(both, on, {"silo.entries": [4, 12]}, **same),
            indelible.why(both, on, fields=["silo.entries"], **same),
        ):
            assert asked.items() <= answer.json().items()
    # Seeds may be what varies, and are then those of the points.
    varied = indelible.sweep(both, on, {"seed": ["2", "5", "02"]})
    assert varied.json()["seeds"] == [2, 5]
    # A base that was not among the designs is compared, too.
    based = indelible.compare(SILO, HASH, normalize="native", crash=False)
    assert based.json()["designs"] == ["native", "silo"]


def test_what_was_interrupted_says_so_everywhere(fake: ModuleType) -> None:
    answers = [
        indelible.run("silo", "hash"),
        indelible.crash("silo", "hash"),
        indelible.litmus(),
        indelible.native.logging(),
        indelible.trace("silo", "hash"),
        indelible.compare(SILO, HASH, crash=False),
        indelible.sweep(SILO, HASH, {"cores": 1}),
        indelible.characterize(HASH),
    ]
    assert [answer.interrupted for answer in answers] == [False] * len(answers)
    assert [answer.json()["cancelled"] for answer in answers] == [False] * len(answers)
    answers[0].data["cancelled"] = True
    assert answers[0].interrupted
    assert answers[0].json()["cancelled"]


def test_a_timeline_says_in_one_place_that_it_is_not_whole(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(request: str, control: object) -> tuple[str, bytes]:
        text, trace = whole(request, control)
        answer = json.loads(text)
        return json.dumps(answer | {"run": answer["run"] | {"cancelled": True}}), trace

    whole = fake.trace
    monkeypatch.setattr(fake, "trace", stopped)
    timeline = indelible.trace("silo", "hash")
    assert timeline.interrupted
    assert (timeline.json()["cancelled"], "cancelled" in timeline.run) == (True, False)


def test_what_is_a_word_of_python_has_another_name(fake: ModuleType) -> None:
    timeline = indelible.trace("silo", "hash")
    assert timeline.start == timeline.json()["from"]


def test_what_was_measured_here_stands_beside_throughput_alone(fake: ModuleType) -> None:
    answer = indelible.compare(SILO, HASH, cores=1, crash=False)
    measured = {("hash", 1): {"workload": "hash", "cores": 1, "throughput_tx_per_s": 1e6}}
    answer = replace(answer, native=measured)
    assert answer.native_ratio("hash") is not None
    assert answer.by_metric("throughput").json()["native"]
    other = answer.by_metric("commit-latency")
    assert other.native_ratio("hash") is None
    assert "native" not in other.json()


@pytest.mark.parametrize("name", ["InputError", "CheckError", "HostError", "InternalError"])
def test_errors_can_be_pickled(name: str) -> None:
    """As one that comes out of another process is."""
    error = getattr(indelible, name)("so it is")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), "so it is")


def test_errors_of_calls_name_arguments(fake: ModuleType) -> None:
    wrong = {
        "`start` and `event` both say": lambda: indelible.trace(*SILO, *HASH, start="1us", event=3),
        "`seeds` takes means over seeds": lambda: indelible.sweep(
            SILO, HASH, {"seed": [1, 2]}, seeds=2
        ),
        "`native` needs `cores`": lambda: indelible.compare(SILO, ["logcache-cached"], native=True),
        "`native` measures only throughput": lambda: indelible.compare(
            SILO, ["logcache-cached"], cores=1, native=True, metric="pm-writes"
        ),
        "add it to `values`": lambda: indelible.native.logging(against="silo", values=["rand"]),
    }
    for sentence, call in wrong.items():
        with pytest.raises(indelible.InputError) as error:
            call()
        assert sentence in str(error.value)
        assert "--" not in str(error.value)
