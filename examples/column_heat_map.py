"""Attention columns of one sample as a picture, positions to the right, steps downwards, mean over layers and heads.

python3 column_heat_map.py RUN/sample_00000.npz OUT.png
"""
import struct
import sys
import zlib

import numpy as np

from recorded_columns import columns_of

SCALE = 6  # pixels a cell
# Five points of a perceptually uniform map from dark to bright (after matplotlib's "inferno", CC0)
COLOURS = np.array([[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]], dtype=np.float32)

columns = columns_of(np.load(sys.argv[1])).mean(axis=(1, 2))  # [T, S]
place = np.clip(columns / max(columns.max(), 1e-9), 0, 1) * (len(COLOURS) - 1)
low = np.minimum(place.astype(int), len(COLOURS) - 2)
part = (place - low)[..., None]
pixels = (COLOURS[low] * (1 - part) + COLOURS[low + 1] * part).astype(np.uint8)
pixels = pixels.repeat(SCALE, axis=0).repeat(SCALE, axis=1)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


height, width, _ = pixels.shape
rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each row begins with its filter, none
header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
with open(sys.argv[2], "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
