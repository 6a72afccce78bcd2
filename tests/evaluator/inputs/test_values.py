"""Inputs of timed calls: no value comes twice without need, and no zeros follow a tensor in memory."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from evaluator.child.cpu_device import FRESH_BYTE
from evaluator.devices.cpu_memory import CpuGrant, Staged
from evaluator.inputs import layouts, mixtures, perturbations, values


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


def test_no_value_of_a_continuum_comes_twice() -> None:
    draw = generator()
    made = [(torch.rand(3000, generator=draw) * 4 + 3,) for _ in range(3)]
    bits, between = mixtures.random_masks(made[0], [True], draw), mixtures.are_continuous(made[0])
    calls = [mixtures.mix(made, bits, between, [True], draw)[0] for _ in range(6)]
    every = torch.cat([*calls, *(base for (base,) in made)])
    assert len(torch.unique(every)) > 0.99 * len(every)
    assert 3 <= float(every.min()) <= float(every.max()) <= 7  # between others of the recipe, so in its domain


def test_masks_labels_and_sparse_values_are_kept() -> None:
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
    assert mixtures.are_continuous((normal, normal.double(), *kept)) == [True, True, *[False] * len(kept)]
    large = torch.rand(1 << 20) + 0.25
    large[7] = 0.0  # by chance, as one of 16 million is
    assert mixtures.are_continuous((large, large[:1000])) == [True, False]
    labels = torch.randint(5, (400,), generator=draw).float()
    made = [(labels,), (labels.flip(0),), (labels.roll(7),)]
    bits = mixtures.random_masks(made[0], [True], draw)
    (mixed,) = mixtures.mix(made, bits, mixtures.are_continuous(made[0]), [True], draw)
    assert set(mixed.tolist()) <= set(labels.tolist())


def test_a_near_duplicate_may_differ_by_less_than_a_hundredth() -> None:
    draw = generator()
    x = torch.randn(8, 8, generator=draw)
    (near,) = perturbations.near_duplicate([x], [True], draw, slightly=True)
    changed = near != x
    assert int(changed.sum()) == 1
    assert 0 < float((near / x - 1)[changed].abs()) < 0.01
    (far,) = perturbations.near_duplicate([x], [True], draw)
    assert int((far != x).sum()) == 1


@pytest.mark.parametrize("most", perturbations.SLIGHT_CHANGES.values())
def test_slight_changes_stay_below_a_tolerance(most: float) -> None:
    draw = generator()
    x = torch.randn(8, 9, generator=draw).t()
    x[3, 3] = 0.0
    found = perturbations.all_slightly_smaller(x, draw, most)
    assert found.stride() == x.stride()
    assert 0.5 < float((found != x).float().mean()) < 1
    assert torch.allclose(found, x, rtol=most, atol=0)
    assert bool((found.abs() <= x.abs()).all())
    pairs = torch.view_as_complex(torch.randn(9, 2, generator=draw))
    assert torch.allclose(perturbations.all_slightly_smaller(pairs, draw, most), pairs, rtol=most, atol=0)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn, torch.int64])
def test_types_of_few_digits_are_not_changed_slightly(kind: torch.dtype) -> None:
    x = torch.arange(40).to(kind)
    assert all(
        perturbations.all_slightly_smaller(x, generator(), n) is x for n in perturbations.SLIGHT_CHANGES.values()
    )


def test_one_element_of_another() -> None:
    x, y = torch.zeros(5, 3).t(), torch.ones(3, 5)
    found = perturbations.with_element_of(x, y, generator())
    assert float(found.sum()) == 1
    assert found.stride() == x.stride()
    assert float(x.sum()) == 0


def test_no_zeros_follow_a_tensor_in_memory() -> None:
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
    (apart,) = layouts.laid_out((torch.ones(4, 6),), "inputs rows apart")
    assert torch.equal(apart, torch.ones(4, 6))
    assert bool(apart.as_strided((4, 9), (9, 1))[:3, 6:].isnan().all())


def test_rows_unlike_each_other_are_all_changed_or_a_few() -> None:
    tensor = torch.randn(64, 32)
    for kind, most in ((values.UNLIKE_ROWS, 64), (values.FEW_UNLIKE, 16)):
        (made,) = values.apply(kind, [tensor], generator())
        changed = int((made != tensor).any(-1).sum())
        assert 1 <= changed <= most
        assert changed == 64 or kind is values.FEW_UNLIKE


def test_only_data_of_few_bits_gets_its_extremes() -> None:
    pixels = [(torch.randint(0, 256, (8, 16), dtype=torch.uint8),) for _ in range(2)]
    (made,) = perturbations.extremes(pixels) or (torch.zeros(1),)
    low, high = (int(getattr(torch.stack([p for (p,) in pixels]), name)()) for name in ("min", "max"))
    assert bool((made[0] == high).all())
    assert bool((made[1] == low).all())
    flags = [(torch.randint(0, 3, (8, 16), dtype=torch.uint8),)] * 2
    labels = [(torch.randint(0, 1 << 30, (8, 16)),)] * 2
    assert perturbations.extremes(flags) is None
    assert perturbations.extremes(labels) is None


def test_values_on_a_grid_are_not_moved() -> None:
    tensor = torch.tensor([0.5, -1.25, 0.3, 7.1])
    (moved,) = perturbations.perturb_last_places([tensor], generator(), values.Rounding(ulps=3, on_grid=True))
    assert (moved == tensor).tolist()[:2] == [True, True]
    assert values.on_grid([torch.randint(-9, 9, (50,)) / 4])
    assert not values.on_grid([torch.rand(5000) + 0.001])
    assert not values.on_grid([torch.arange(9)])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_denormal_halves_move_as_far_as_rounding_to_their_unit(dtype: torch.dtype) -> None:
    draw, right = generator(), torch.randn(512, 64, dtype=torch.float64)
    (rows,) = values.apply(values.DENORMAL, [torch.randn(8, 512, generator=draw).to(dtype)], draw)
    gain = torch.rand(512, generator=draw).to(dtype)
    (moved,) = perturbations.perturb_last_places([rows], draw, values.DENORMAL.rounding)
    wide, other = rows.double() * gain.double(), moved.double() * gain.double()
    honest = float(((rows * gain).double() @ right - wide @ right).norm())
    assert 0.3 * honest < float((other @ right - wide @ right).norm()) < 3 * honest
    usual = torch.randn(50).to(dtype)
    assert torch.equal(perturbations.perturb_last_places([usual], draw, values.DENORMAL.rounding)[0], usual)


def test_complex_numbers_have_their_values_too_but_no_infinities() -> None:
    tensor = torch.randn(9, 8, dtype=torch.complex64)
    (small,) = values.apply(values.SMALL, [tensor], generator())
    assert torch.allclose(small, tensor * 1e-4)
    assert bool(values.apply(values.WITH_NAN, [tensor], generator())[0].isnan().any())
    assert torch.equal(values.apply(values.WITH_INF, [tensor], generator())[0], tensor)


def test_uninitialised_memory_is_found_where_an_element_has_several_bytes() -> None:
    fresh = torch.full((8,), FRESH_BYTE, dtype=torch.uint8)
    assert values.holds_uninitialised_memory(fresh.view(torch.float32))
    assert not values.holds_uninitialised_memory(fresh)
    assert not values.holds_uninitialised_memory(torch.randn(4))


def test_other_layouts_hold_the_same_values() -> None:
    tensors = (torch.randn(2, 3, 4, 5), torch.randn(()), torch.randn(7))
    for name in layouts.NAMES:
        made = layouts.laid_out(tensors, name)
        assert all(map(torch.equal, made, tensors)), name
        moved = [a.stride() != b.stride() or a.storage_offset() > 0 for a, b in zip(made, tensors, strict=True)]
        assert moved[0] or not name.startswith(("inputs", "input 1")), name
        assert not moved[0] or name.startswith(("inputs", "input 1")), name
        assert not moved[1], "a single number has one layout"
    assert layouts.laid_out(tensors, "input 3 alone of every other element")[2].stride() == (2,)
    assert layouts.laid_out(tensors, "inputs rows whole vectors apart")[0].stride() == (252, 84, 21, 1)
    assert layouts.laid_out(tensors, "inputs blocks apart")[0].stride() == (75, 25, 5, 1)
    assert layouts.laid_out(tensors, "inputs of channels last")[0].is_contiguous(memory_format=torch.channels_last)
    assert layouts.laid_out(tensors, "") == tensors


def test_every_sixteenth_element_is_swapped() -> None:
    for x in (torch.randn(40, 50).t(), torch.randn(40, 50)[:, ::2], torch.randn(2), torch.tensor(1.5), torch.randn(1)):
        found = perturbations.with_some_swapped(x, generator())
        assert found.stride() == x.stride()
        assert torch.equal(found.flatten().sort().values, x.flatten().sort().values)
        if x.numel() > 99:
            assert 0.03 < float((found != x).float().mean()) < 0.07
    assert perturbations.with_some_swapped(torch.randn(3, 4, dtype=torch.complex64), generator()).is_complex()


def test_the_largest_of_a_few_rows_are_swapped() -> None:
    for x in (torch.randn(40, 50).t(), torch.randn(2, 40, 50)[..., ::2], torch.randn(9), torch.tensor(1.5)):
        found = perturbations.with_peaks_swapped(x, generator())
        assert found.stride() == x.stride()
        assert torch.equal(found.sort(-1).values, x.sort(-1).values)
        assert 0 <= int((found != x).sum()) <= 8
    logits = torch.randn(24, 80) * 8
    seen = [perturbations.with_peaks_swapped(logits, torch.Generator().manual_seed(seed)) for seed in range(50)]
    visible = [bool(((torch.softmax(one, -1) - torch.softmax(logits, -1)).abs() > 1e-4).any()) for one in seen]
    assert sum(visible) >= 48


@pytest.mark.parametrize("kind", [values.WITH_NAN, values.LARGE_END])
def test_the_last_element_decides(kind: values.ValueSet) -> None:
    """Kernels for whole vectors and blocks alone do not read it."""
    for seed in range(4):
        draw = torch.Generator().manual_seed(seed)
        (made,) = values.apply(kind, [torch.randn(4099, 16, generator=draw)], draw)
        assert made.amax(0)[-1] != made[:-1].amax(0)[-1]
        assert not torch.allclose(made.mean(), made.flatten()[:-1].mean(), rtol=0.01)


def test_infinities_come_at_the_ends_and_elsewhere() -> None:
    made = [values.apply(values.WITH_INF, [torch.randn(40, 16)], torch.Generator().manual_seed(n))[0] for n in range(8)]
    at_ends = [bool(one[0, 0].isinf() & one[-1, -1].isinf()) for one in made]
    assert True in at_ends
    assert False in at_ends


def test_infinities_of_either_sign_lie_in_one_line_of_each_axis() -> None:
    for seed in range(4):
        (made,) = values.apply(values.INF_LINES, [torch.randn(40, 2, 16)], torch.Generator().manual_seed(seed))
        for axis in range(made.ndim):
            assert bool(((made == math.inf).any(axis) & (made == -math.inf).any(axis)).any())
    assert bool(values.apply(values.INF_LINES, [torch.tensor(1.5)], generator())[0].isfinite())


def test_columns_and_channels_unlike_each_other_keep_their_own_digits() -> None:
    image = torch.randn(3, 40, 5, 40)
    for kind, axis in ((values.UNLIKE_COLUMNS, 3), (values.UNLIKE_CHANNELS, 1)):
        (made,) = values.apply(kind, [image], generator())
        lines = made.movedim(axis, 0).flatten(1)
        assert 50 < float((lines.mean(1).abs() / lines.std(1)).median()) < 250
    (same,) = values.apply(values.UNLIKE_COLUMNS, [image[0, 0, 0]], generator())
    assert torch.equal(same, image[0, 0, 0])
    wanted = [values.UNLIKE_COLUMNS, values.UNLIKE_CHANNELS]
    assert values.usable_sets(wanted, (), [image]) == wanted
    assert values.usable_sets(wanted, (), [image[0, 0]]) == wanted[:1]


def test_every_value_set_has_a_turn_before_one_has_two() -> None:
    kinds, turns, draw = values.ADVERSARIAL[:5], Counter[str](), generator()
    taken = [values.in_turn(kinds, turns, draw)[0] for _ in range(2 * len(kinds))]
    assert set(taken[: len(kinds)]) == set(taken[len(kinds) :]) == set(kinds)
    assert values.in_turn((), turns, draw) == []


def test_images_get_no_large_end() -> None:
    image = torch.randn(2, 3, 8, 8)
    assert torch.equal(values.apply(values.LARGE_END, [image], generator())[0], image)
