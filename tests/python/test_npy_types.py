"""Whatever np.save writes and np.load reads is read here, with the type that np.load gives."""

from __future__ import annotations

import random
import struct
import warnings

import lowtide as lt
import numpy as np
import pytest

PLAIN = [
    "?", "i1", ">i2", "<i4", "<u8", "<f2", ">f8", "<c8", "S3", "<U2", ">U1", "V5", "<M8[ns]",
    ">m8[7D]",
]  # fmt: skip
SIZELESS = ["S0", "U0", "V0"]
NAMES = ["", "a", "b", "x y", "it's", "größe", "高さ", "\n", "very_long_name_" * 5]


def made_type(rng: random.Random, depth: int = 0) -> np.dtype:
    """A type of any shape that NumPy can make; raises ValueError where it cannot."""
    kind = rng.randrange(8) if depth < 3 else 0
    if kind < 2:
        return np.dtype(rng.choice(PLAIN if rng.random() < 0.9 else SIZELESS))
    if kind == 2:
        shape = tuple(rng.choice([0, 1, 2, 3]) for _ in range(rng.randrange(4)))
        return np.dtype((made_type(rng, depth + 1), shape))
    count = rng.randrange(5)
    names = rng.sample(NAMES, count)
    formats = [made_type(rng, depth + 1) for _ in names]
    if kind < 5:
        fields = [
            ((f"title {name}", name) if rng.random() < 0.3 else name, form)
            for name, form in zip(names, formats)
        ]
        if "" not in names:  # in a list NumPy would name it f0
            return np.dtype(fields, align=rng.random() < 0.5)
    offsets, end = [], 0
    for form in formats:
        offsets.append(end + rng.choice([0, 0, 1, 3, -1]))
        end = max(0, offsets[-1]) + form.itemsize
    titles = [rng.choice([None, None, f"t{i}", ""]) for i in range(count)]
    parts = {"names": names, "formats": formats, "offsets": offsets, "titles": titles}
    return np.dtype(parts | {"itemsize": end + rng.choice([0, 0, 2, 8])})


def facts(dtype: np.dtype) -> object:
    """All that can differ between two types, to the last title."""
    if dtype.subdtype is not None:
        return facts(dtype.subdtype[0]), dtype.subdtype[1]
    if dtype.fields is None:
        return dtype.str
    places = {key: (facts(place[0]), *place[1:]) for key, place in dtype.fields.items()}
    return dtype.names, places, dtype.itemsize


def check_as_np_load(path, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that need a header of version 3
        np.save(path, data)
    expected = np.load(path)
    with lt.open(path) as a:
        assert facts(a.dtype) == facts(expected.dtype)
        assert (a.shape, a.nbytes) == (expected.shape, expected.nbytes)
        got = a[...]
        assert facts(got.dtype) == facts(expected.dtype)
        assert got.shape == expected.shape
        if got.nbytes:
            plain = got.reshape(-1).view(f"V{got.dtype.itemsize}").tobytes()
            assert plain == path.read_bytes()[-got.nbytes :]


@pytest.mark.parametrize("seed", range(20))
def test_types_of_any_shape_are_those_of_np_load(tmp_path, seed):
    rng = random.Random(seed)
    saved = refused = 0
    while saved < 50:
        try:
            dtype = made_type(rng)
            np.lib.format.dtype_to_descr(dtype)
        except ValueError:  # NumPy has no such type, or cannot write it: fields that overlap
            refused += 1
            assert refused < 10_000
            continue
        if dtype.subdtype is not None:
            continue  # an array's own type never is one
        raw = np.random.default_rng(saved).integers(0, 2, 3 * dtype.itemsize, np.uint8)
        data = raw.view(dtype) if dtype.itemsize else np.ndarray(3, dtype)
        check_as_np_load(tmp_path / "m.npy", data)
        saved += 1


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype({"names": [""], "formats": ["<f8"]}),
        np.dtype({"names": ["", "a"], "formats": ["<f8", "<i4"]}),
        np.dtype({"names": [""], "formats": ["V4"]}),
        np.dtype({"names": [""], "formats": [("<f4", (3,))]}),
        np.dtype({"names": [""], "formats": [[("x", "<i4")]]}),
        np.dtype({"names": ["a"], "formats": ["<i4"], "offsets": [4], "itemsize": 16}),
        np.dtype({"names": ["a"], "formats": ["<f4"], "titles": [""]}),
        np.dtype({"names": [""], "formats": ["V4"], "titles": ["t"]}),
        np.dtype({"names": [], "formats": [], "itemsize": 8}),
        np.dtype([("flag", "?"), ("value", "<f8")], align=True),
        np.dtype([("n", np.dtype([("x", "u1"), ("y", "<f8")], align=True), (2,))], align=True),
        np.dtype([("a", np.dtype([]), (2,))]),
        np.dtype([("a", "S0"), ("b", "U0"), ("c", "V0"), ("d", "u1")]),
        np.dtype([("x", ("<f8", (5,)), (2,))]),
    ],
    ids=str,
)
def test_a_type_that_numpy_pads_or_does_not_name(tmp_path, dtype):
    check_as_np_load(tmp_path / "m.npy", np.zeros(2, dtype))


def header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    "descr",
    ["[('a', '|S0', 3)]", "('|S0', 3)", "('<U0', 2)", "[['a', '<f4']]", "[('a', '<f4', [2, 3])]",
     "[('', '|V4', (2,)), ('a', '|u1')]"],
)  # fmt: skip
def test_spellings_that_only_other_writers_use(tmp_path, descr):
    path = tmp_path / "m.npy"
    path.write_bytes(header(descr, "(2,)") + bytes(100))
    expected = np.load(path)
    with lt.open(path) as a:
        assert (facts(a.dtype), a.shape) == (facts(expected.dtype), expected.shape)
