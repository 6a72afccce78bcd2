"""Inputs of timed calls: no value comes twice where it need not, and what lies behind a tensor is no zeros."""

from __future__ import annotations

import torch

from evaluator import layouts, mixtures, values
from evaluator.devices.cpu_memory import CpuGrant, Staged


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


def test_no_value_of_a_continuum_comes_twice() -> None:
    draw = generator()
    made = [(torch.rand(3000, generator=draw) * 4 + 3,) for _ in range(3)]
    bits, between = mixtures.coins(made[0], [True], draw), mixtures.continuous(made[0])
    calls = [mixtures.mixed(made, bits, between, [True], draw)[0] for _ in range(6)]
    every = torch.cat([*calls, *(base for (base,) in made)])
    assert len(torch.unique(every)) > 0.99 * len(every)
    assert 3 <= float(every.min()) <= float(every.max()) <= 7  # between others of the recipe, so in its domain


def test_values_that_mean_something_are_kept() -> None:
    draw = generator()
    normal = torch.randn(40, 40, generator=draw)
    kept = [
        (normal > 0).float(),
        normal.round(),
        normal.relu(),
        normal.log(),
        torch.ones(9),
        normal.bfloat16(),
        normal > 0,
    ]
    assert mixtures.continuous((normal, normal.double(), *kept)) == [True, True, *[False] * len(kept)]
    labels = torch.randint(5, (400,), generator=draw).float()
    made = [(labels,), (labels.flip(0),), (labels.roll(7),)]
    bits = mixtures.coins(made[0], [True], draw)
    (mixed,) = mixtures.mixed(made, bits, mixtures.continuous(made[0]), [True], draw)
    assert set(mixed.tolist()) <= set(labels.tolist())


def test_a_twin_may_differ_by_less_than_a_hundredth() -> None:
    draw = generator()
    x = torch.randn(8, 8, generator=draw)
    (near,) = values.twin([x], [True], draw, slightly=True)
    changed = near != x
    assert int(changed.sum()) == 1
    assert 0 < float((near / x - 1)[changed].abs()) < 0.01
    (far,) = values.twin([x], [True], draw)
    assert int((far != x).sum()) == 1


def test_one_element_of_another() -> None:
    x, y = torch.zeros(5, 3).t(), torch.ones(3, 5)
    found = values.with_element_of(x, y, generator())
    assert float(found.sum()) == 1
    assert found.stride() == x.stride()
    assert float(x.sum()) == 0


def test_no_zeros_lie_behind_a_tensor() -> None:
    call = (torch.zeros(5), torch.zeros(3, dtype=torch.int64))
    for made in (CpuGrant([call, call]), Staged([call, call], None)):
        fd = made.fds[0] if isinstance(made, CpuGrant) else made.fd
        if isinstance(made, Staged):
            made.write([call, call], None)
        with open(fd, "rb", closefd=False) as file:
            data = file.read()
        for start in (0, made.pitch):
            first, second = (spec.offset for spec in made.specs)
            assert data[start + first : start + first + 20] == bytes(20)
            assert set(data[start + first + 20 : start + second]) == {255}
            assert set(data[start + second + 24 : start + made.pitch]) == {255}
        made.close()
    assert CpuGrant([()]).specs == []


def test_a_caller_s_gaps_hold_no_zeros() -> None:
    (apart,) = layouts.laid_out((torch.ones(4, 6),), "rows apart")
    assert torch.equal(apart, torch.ones(4, 6))
    assert bool(apart.as_strided((4, 9), (9, 1))[:3, 6:].isnan().all())
