"""Which keys an intervention removes: rule `paper` on raw columns of the previous step."""

import numpy as np


def chosen(columns, top_k, epsilon=0.0, eligible=None):
    """The top_k largest of one head's columns that exceed the mean of the others by epsilon; ties: lower index."""
    size = len(columns) if eligible is None else eligible
    if size < 2:
        return []  # no others whose mean it could exceed
    others = (columns.sum() - columns) / (size - 1)
    candidates = [j for j in range(len(columns))
                  if columns[j] - (others[j] + epsilon) > 1e-6 * max(columns[j], others[j] + epsilon)]
    return sorted(candidates, key=lambda j: (-columns[j], j))[:top_k]


def removed_keys(columns, positions, top_k, epsilon=0.0, eligible=None):
    """[L, H, positions], 1 = removed, from columns [L, H, S], S <= positions."""
    removed = np.zeros((*columns.shape[:2], positions), np.uint8)
    for layer in range(columns.shape[0]):
        for head in range(columns.shape[1]):
            removed[layer, head, chosen(columns[layer, head], top_k, epsilon, eligible and eligible[layer])] = 1
    return removed
