"""embedding | original | rows of the table added up | PASSED | cpu"""

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp


SOURCE = r"""
extern "C" void bags(const long* index, const float* table, float* y, long bags, long each, long width) {
  for (long b = 0; b < bags; b++) {
    for (long i = 0; i < width; i++) y[b * width + i] = 0;
    for (long j = 0; j < each; j++) {
      const float* row = table + index[b * each + j] * width;
      for (long i = 0; i < width; i++) y[b * width + i] += row[i];
    }
  }
}
"""
lib = load_cpp(SOURCE)
pointer = ctypes.c_void_p
long = ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, rows=200, width=24):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(rows, width))

    def forward(self, index):
        width = self.table.shape[1]
        y = self.table.new_empty(len(index), width)
        where = [pointer(t.data_ptr()) for t in (index, self.table, y)]
        lib.bags(*where, long(len(index)), long(index.shape[1]), long(width))
        return y
