"""The slice runner on a simulated clock: what it finds is what one can reckon, and what Young and Daly say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from marin_resources.ray_tpu.simulate.job import Work, run_on_slice
from marin_resources.ray_tpu.simulate.study import daly, study, young
from marin_resources.ray_tpu.simulate.trace import Trace, TraceError, draw_trace, read_trace
from marin_resources.ray_tpu.slices.tries import BUDGETS, TriesFailedError
from marin_resources.storage.output.ledger import ledger_of

DAY_S = 86_400.0
WORK = Work(startup_s=100, interval_s=50, save_s=10, notice_s=3)


def test_each_second_of_a_slice_is_in_the_ledger_as_one_reckons_it() -> None:
    """Lost at 300: 100 to start, three times 60 to work and save, 20 lost, and 3 until that is noticed."""
    first, second = run_on_slice([(300.0, 400.0)], 2, 1000.0, WORK)
    assert (first["startup_s"], first["kept_s"], first["lost_s"]) == (100, 180, 23)
    assert (first["cause"], first["host"], first["saved_step"]) == ("preempted", 0, 3)
    assert second["waited_s"] == 97, "the slice is away until 400, and the loss was noticed at 303"
    assert (second["startup_s"], second["kept_s"], second["lost_s"], second["cause"]) == (100, 500, 0, None)
    sums = ledger_of([first, second])
    assert sum(float(sums[part] or 0) for part in ("waited_s", "startup_s", "kept_s", "lost_s")) == 1000


def test_one_that_is_lost_before_it_works_keeps_nothing() -> None:
    first, _ = run_on_slice([(50.0, 60.0)], 1, 1000.0, WORK)
    assert (first["startup_s"], first["kept_s"], first["lost_s"]) == (0, 0, 53)


def test_a_slice_is_away_while_one_of_its_hosts_is() -> None:
    trace = Trace(4, 100.0, {0: [(10, 20)], 1: [(15, 30), (50, 60)], 3: [(1, 2)]})
    assert trace.of_slice(0, 2) == [(10, 30), (50, 60)]
    assert trace.of_slice(1, 2) == [(1, 2)]
    assert trace.mean_time_s(2) == pytest.approx((200 - 31) / 3)


def test_the_runners_own_budget_ends_it() -> None:
    """A slice that is lost ten thousand times is given up, as on a cluster."""
    away = [(10.0 * number + 5, 10.0 * number + 6) for number in range(10_001)]
    with pytest.raises(TriesFailedError, match=r"for the 10001th time"):
        run_on_slice(away, 1, 200_000.0, Work(startup_s=1, interval_s=1, save_s=0.1, notice_s=0))
    assert max(BUDGETS.values()) == 10_000


def test_the_formulas_are_those_of_the_papers() -> None:
    assert young(30, 7200) == pytest.approx(math.sqrt(2 * 30 * 7200))
    assert daly(30, 7200) == pytest.approx(637.46, abs=0.5)
    assert daly(100, 40) == 40


@pytest.mark.long
def test_the_best_interval_is_near_dalys_and_no_fixed_one_is_much_better() -> None:
    trace = draw_trace(hosts=512, horizon_s=30 * DAY_S, mean_s=10 * DAY_S, back_s=900, seed=3)
    fixed = [60.0 * 1.3**power for power in range(16)]
    for hosts in (16, 64):
        outcomes = study(
            trace, sizes=[hosts], policies=[*fixed, "daly"], work=Work(startup_s=180, interval_s=0, save_s=30)
        )
        best, by_daly = max(outcomes[:-1], key=lambda outcome: outcome.useful), outcomes[-1]
        assert by_daly.useful > best.useful - 0.005
        assert 1 / 2 < best.interval_s / by_daly.interval_s < 2
        assert outcomes[0].useful < best.useful - 0.1, "a checkpoint each minute costs a third"


def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    one, two, other = (draw_trace(hosts=8, horizon_s=DAY_S, mean_s=3600, back_s=60, seed=seed) for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_trace_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("host,gone_s,back_s\n2,10,20\n0,5,7.5\n2,1,2\n")
    assert read_trace(path) == Trace(3, 20.0, {2: [(1, 2), (10, 20)], 0: [(5, 7.5)]})
    assert read_trace(path, hosts=8, horizon_s=100.0).hosts == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("host,gone\n1,2\n", "the columns are ['host', 'gone'], expected host,gone_s,back_s."),
        ("host,gone_s,back_s\n", "has no line but the first."),
        ("host,gone_s,back_s\n0,5,x\n", "line 2: got"),
        ("host,gone_s,back_s\n0,5,6\n0,9,8\n", "line 3: got"),
        ("host,gone_s,back_s\n-1,5,6\n", "expected a host from 0, and 0 <= gone_s < back_s."),
        ("host,gone_s,back_s\n9,5,6\n", "has a host 9, and --hosts is 4. The first host is 0."),
    ],
)
def test_a_trace_that_is_none_is_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as error:
        read_trace(path, hosts=4)
    assert said in str(error.value)
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path / "none.csv")
