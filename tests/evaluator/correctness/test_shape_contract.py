"""Sizes whose outputs have shapes that the Workloads' let nobody expect."""

from evaluator.correctness.shape_contract import ShapeContract


def test_an_axis_that_is_as_long_as_a_size_stays_so() -> None:
    meaning = ShapeContract()
    meaning.learn({"heads": 16, "dim": 128, "dtype": "float16"}, [(2, 16, 128)])
    meaning.learn({"heads": 8, "dim": 64, "dtype": "float16"}, [(2, 8, 64)])
    assert meaning.allows({"heads": 8, "dim": 62}, [(2, 8, 62)])
    assert not meaning.allows({"heads": 8, "dim": 3}, [(2, 8, 4)])
    assert not meaning.allows({"heads": 1, "dim": 64}, [(2, 0, 64)])


def test_equal_sizes_may_each_be_meant_and_a_coincidence_is_forgotten() -> None:
    meaning = ShapeContract()
    meaning.learn({"k": 512, "n": 512, "m": 128}, [(128, 512)])
    assert meaning.allows({"k": 511, "n": 512, "m": 128}, [(128, 512)])
    assert meaning.allows({"k": 512, "n": 511, "m": 128}, [(128, 511)])
    meaning.learn({"k": 512, "n": 512, "m": 64}, [(128, 512)])
    assert meaning.allows({"k": 512, "n": 512, "m": 63}, [(128, 512)])


def test_nothing_is_expected_before_a_workload_was_seen() -> None:
    assert ShapeContract().allows({"n": 3}, [(4,)])
