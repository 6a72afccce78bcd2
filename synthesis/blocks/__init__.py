"""Building blocks: kernels with a frame that is written once, and with slots that the reference's operations fill.

A block owns masks, clamps, positions, pipelining, guards against infinities, the launch and its Tunables. Slots hold
any element-wise expression: a prologue on each operand, a score, an epilogue.

- `product`: skinny matrix products (few rows), several at a time, with dequantisation (8 and 4 bits, scales by column
  or group) and low-rank terms inside, and a norm's statistics beside. `multiply` writes its kernels, `factors` moves
  scales out of its sums, `narrow` makes operands of integers. What others read of the result's cone is stored beside
  it, as a recurrence's state. `large` writes float32 products of many rows.
- `attention`: softmax(q k) v over one pass of the keys, with the keys split among programs where rows are few, and
  values that are part of the keys' tile (latent caches). `attend` writes its kernels.
- `groups`: statistics over groups of channels, then an element-wise result.
- `batch`: statistics of each channel over the batch, running ones too, then the normalised batch.
- `long_rows`: layer normalisation of few long rows, then an element-wise result.
- `pool`: largest elements and means of windows of one and two dimensions; `volume`: of three.
- `scan`: sums of all elements up to each, from either end.
- `extreme`: positions of the largest or least elements.

`rewrite.use_blocks` finds them in a Program.
"""
