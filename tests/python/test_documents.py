"""The documents of a token stream as a sequence."""

from __future__ import annotations

import lowtide as lt
import numpy as np
import pytest
from token_files import write_megatron


def test_documents_of_megatron(tmp_path):
    rng = np.random.default_rng(2)
    documents = [rng.integers(0, 1000, length) for length in (5, 1, 0, 12, 300, 0, 2)]
    path = write_megatron(tmp_path / "data", documents)
    for named in (path, path.replace(".bin", ".idx"), path.replace(".bin", "")):
        with lt.tokens(named, memory="1MiB") as t:
            found = t.documents
            assert len(found) == 7
            assert found.offsets.tolist() == [0, 5, 6, 6, 18, 318, 318, 320]
            for i in range(-7, 7):
                np.testing.assert_array_equal(found[i], documents[i])
                assert found[i].dtype == np.uint16
            for one, expected in zip(found, documents):
                np.testing.assert_array_equal(one, expected)
            assert "7" in repr(found)
            for wrong in (7, -8):
                with pytest.raises(IndexError, match=f"document {wrong} .*there are 7"):
                    found[wrong]
            for wrong in (slice(0, 2), 1.0, "a", None):
                with pytest.raises(TypeError, match="integer"):
                    found[wrong]


def test_documents_of_several_megatron_files_are_one_sequence(tmp_path):
    first = [[1, 2, 3], [4]]
    second = [[5, 6], [], [7, 8, 9]]
    paths = [write_megatron(tmp_path / "a", first), write_megatron(tmp_path / "b", second)]
    with lt.tokens(paths) as t:
        assert [one.tolist() for one in t.documents] == first + second
        assert t.documents.offsets.tolist() == [0, 3, 4, 6, 6, 9]


def test_many_documents_within_a_small_budget(tmp_path):
    lengths = np.random.default_rng(0).integers(0, 6, 300_000)
    documents = np.split(np.arange(lengths.sum()) % 60_000, np.cumsum(lengths)[:-1])
    path = write_megatron(tmp_path / "data", documents)
    with lt.tokens(path, memory="1MiB") as t:
        expected = np.concatenate([[0], np.cumsum(lengths)])
        np.testing.assert_array_equal(t.documents.offsets, expected)
        for i in (0, 77_777, 299_999):
            np.testing.assert_array_equal(t.documents[i], documents[i])
