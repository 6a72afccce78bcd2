"""Copies of a module, so that large weights are not found in the L2 again."""

import ctypes

import torch

from evaluator.child.gpu.ops import _copies


def test_copies_have_weights_of_their_own():
    model = torch.nn.Linear(4, 4)
    made = _copies(model, 3)
    assert made[0] is model
    assert len({one.weight.data_ptr() for one in made}) == 3
    assert all(torch.equal(one.weight, model.weight) for one in made)


def test_a_module_that_cannot_be_copied_is_used_alone():
    model = torch.nn.Linear(4, 4)
    model.handle = ctypes.pointer(ctypes.c_int(1))
    assert _copies(model, 3) == [model]
