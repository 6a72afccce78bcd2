"""The arithmetic of a timed CUDA round, and the roofline floor."""

import math

from hypothesis import given
from hypothesis import strategies as st

from evaluator.devices.cuda_facts import bandwidth_of, floor_us, throttle_reasons
from evaluator.devices.cuda_plan import MAX_CALLS, MAX_REPLAYS, ROUND_US, CallSize, plan_replays, plan_rotation

H200_L2 = 60 * 1024**2
sizes = st.integers(min_value=0, max_value=2**36)


@given(inputs=sizes, outputs=sizes, parameters=sizes)
def test_rotation_is_possible_and_within_memory(inputs, outputs, parameters):
    size = CallSize(inputs=inputs, outputs=outputs, parameters=parameters)
    plan = plan_rotation(size, H200_L2)
    assert 2 <= plan.calls <= 2 * MAX_CALLS
    assert 1 <= plan.instances <= plan.calls
    assert plan.calls % plan.instances == 0
    if plan.cold:
        assert plan.calls * (inputs + outputs) + plan.instances * parameters >= 2 * H200_L2


def test_large_streaming_op_exceeds_the_l2_several_times():
    plan = plan_rotation(CallSize(inputs=2 * 33_554_432, outputs=33_554_432), H200_L2)
    assert plan.cold
    assert plan.instances == 1
    assert plan.calls == 3


def test_decode_sized_linear_rotates_its_weights():
    plan = plan_rotation(CallSize(inputs=16 * 4096 * 2, outputs=16 * 14336 * 2, parameters=4096 * 14336 * 2), H200_L2)
    assert plan.cold
    assert plan.instances == 3
    assert plan.calls % 3 == 0


def test_a_tiny_op_is_said_to_be_warm():
    assert not plan_rotation(CallSize(inputs=4096, outputs=4096), H200_L2).cold


@given(st.floats(min_value=1e-3, max_value=1e7))
def test_replays_reach_the_round_length(rotation_us):
    replays = plan_replays(rotation_us)
    assert replays == MAX_REPLAYS or replays * rotation_us >= ROUND_US
    assert replays == 1 or (replays - 1) * rotation_us < ROUND_US


def test_replays_of_a_nonsense_time():
    assert [plan_replays(value) for value in (0.0, -1.0, math.nan, math.inf)] == [1, 1, 1, 1]


def test_floor_counts_only_what_cannot_be_in_l2():
    assert bandwidth_of("NVIDIA H200") == 4.8e12
    assert bandwidth_of("something else") is None
    assert floor_us(100, 4, 0, None) is None
    assert floor_us(48_000_000, 10, 0, 4.8e12) == 10.0
    assert floor_us(48_000_000, 10, 240_000_000, 4.8e12) == 5.0
    assert floor_us(1000, 10, H200_L2, 4.8e12) == 0.0


def test_throttle_reasons_leave_out_idle():
    assert throttle_reasons(0x1 | 0x2) == ()
    assert throttle_reasons(0x4 | 0x40) == ("software power cap", "hardware thermal slowdown")
