"""What a sample records of its attention, as one array for both kinds of models."""
import numpy as np


def columns_of(sample):
    """[T, L, H, S], an average key has 1. Diffusion: column sums of all queries. Autoregression: the last query's row times
    the keys it sees; 0 for keys that were not there yet."""
    if "column_sum" in sample:
        return sample["column_sum"].astype(np.float32).sum(axis=1)
    rows = [sample[f"last_row_{t}"].astype(np.float32) for t in range(sum(name.startswith("last_row_") for name in sample))]
    columns = np.zeros((len(rows), *rows[-1].shape), np.float32)
    for t, row in enumerate(rows):
        columns[t, :, :, :row.shape[2]] = row * row.shape[2]
    return columns
