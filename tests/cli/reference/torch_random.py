"""The random streams of PyTorch's CPU generator, the 32-bit Mersenne twister, in NumPy."""

import numpy as np


class Generator:
    """torch.Generator().manual_seed(seed)."""

    def __init__(self, seed):
        self._twister = np.random.RandomState(seed)

    def _words(self, count):
        return self._twister.randint(0, 2**32, count, dtype=np.uint32).astype(np.uint64)

    def rand32(self, *shape):
        """torch.rand(shape): 24 bits of one word each."""
        words = self._words(int(np.prod(shape))) & np.uint64(2**24 - 1)
        return (words / 2.0**24).astype(np.float32).reshape(shape)

    def rand64(self, *shape):
        """torch.rand(shape, dtype=torch.float64): 53 bits of two words each, the high word first."""
        words = self._words(2 * int(np.prod(shape))).reshape(-1, 2)
        joined = (words[:, 0] << np.uint64(32) | words[:, 1]) & np.uint64(2**53 - 1)
        return (joined / 2.0**53).reshape(shape)

    def randint(self, low, high):
        """torch.randint(low, high, (1,))."""
        return low + int(self._words(1)[0]) % (high - low)

    def randperm(self, count):
        """torch.randperm(count)."""
        order = np.arange(count)
        for i in range(count - 1):
            j = i + int(self._words(1)[0]) % (count - i)
            order[i], order[j] = order[j], order[i]
        return order

    def multinomial(self, probabilities):
        """torch.multinomial(row, 1, replacement=True): inversion of the cumulative float32 sums."""
        sums = np.cumsum(probabilities.astype(np.float32), dtype=np.float32)
        sums /= sums[-1]
        sums[-1] = 1
        return int(np.searchsorted(sums, self.rand64(1)[0]))


def linspace32(start, end, count):
    """torch.linspace(start, end, count) in float32, from both ends to the middle (its last bit depends on the build)."""
    start, end = np.float32(start), np.float32(end)
    if count == 1:
        return np.array([start])
    step = (end - start) / np.float32(count - 1)
    index = np.arange(count)
    return np.where(index < count // 2, start + step * index.astype(np.float32),
                    end - step * (count - 1 - index).astype(np.float32)).astype(np.float32)
