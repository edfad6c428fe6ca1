"""The strongest attention sinks of one sample: python3 strongest_sinks.py RUN/sample_00000.npz"""
import sys

import numpy as np

from recorded_columns import columns_of

sample = np.load(sys.argv[1])
columns = columns_of(sample)  # [T, L, H, S]: an average key has 1
for flat in columns.ravel().argsort()[::-1][:5]:
    t, l, h, j = np.unravel_index(flat, columns.shape)
    print(f"step {t:3} layer {l} head {h}: position {j} (id {sample['states'][t, j]}) draws {columns[t, l, h, j]:.1f} times the average")
print(f"{(columns > 1 + 3 * (columns.shape[3] - 1) / columns.shape[3]).mean():.2%} of all (step, layer, head, position) cells are sinks (eps = 3)")
