"""Raw values: any dtype, any shape, readable by the safetensors package."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
import safetensors
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from endoscope.schema.recording import RAW_DTYPES, Key, RawValues
from endoscope.store import tensors
from endoscope.store.tensors import CannotStore, TensorFile
from endoscope.store.writer import TrialWriter
from tests.store.made_up import step_record

PLAIN = [name for name in RAW_DTYPES if not name.startswith(("bfloat", "float8"))] + ["complex128"]
FLOATS8 = [name for name in RAW_DTYPES if name.startswith("float8")]


def encoded(*values: tuple[RawValues, str]) -> bytes:
    return tensors.encode(values)


def decoded(data: bytes) -> TensorFile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        path.write_bytes(data)
        return TensorFile(path, memoryview(data))


@given(data=st.data(), dtype=st.sampled_from(PLAIN))
def test_every_plain_array_comes_back(data: st.DataObject, dtype: str) -> None:
    array = data.draw(arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4)))
    found = decoded(encoded((RawValues(3, array), dtype))).array(3)
    assert found.dtype == array.dtype and found.shape == array.shape
    assert found.tobytes() == array.tobytes()


def test_any_strides_and_byte_orders() -> None:
    array = np.arange(24, dtype=">f4").reshape(2, 3, 4).transpose(2, 0, 1)[::2]
    assert np.array_equal(decoded(encoded((RawValues(0, array), "float32"))).array(0), array)


def test_many_tensors_of_different_widths_lie_aligned() -> None:
    values = [(RawValues(n, np.full(3, n % 2, dtype)), dtype) for n, dtype in enumerate(PLAIN)]
    file = decoded(encoded(*values))
    for raw, dtype in values:
        assert np.array_equal(file.array(raw.key), raw.array)
        entry = file.entries[raw.key]
        assert entry.start % (np.dtype(dtype).itemsize if dtype != "complex128" else 8) == 0


def test_bfloat16_is_kept_as_it_is_and_read_as_float32() -> None:
    value = torch.randn(4, 5).bfloat16()
    data = encoded((RawValues(0, value.view(torch.int16).numpy(), [1, 2, 3, 7]), "bfloat16"))
    assert len(data) < 200 + 2 * value.numel()
    file = decoded(data)
    assert np.array_equal(file.array(0), value.float().numpy())
    assert np.array_equal(file.array(0, 2), value[2].float().numpy())
    assert file.array(0).dtype == np.float32 and file.samples == {0: [1, 2, 3, 7]}


@pytest.mark.parametrize("dtype", FLOATS8)
def test_every_value_of_the_8_bit_floats(dtype: str) -> None:
    bits = np.arange(256, dtype=np.uint8)
    expected = torch.from_numpy(bits.copy()).view(getattr(torch, dtype)).float().numpy()
    found = decoded(encoded((RawValues(0, bits), dtype))).array(0)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))


def test_a_scalar_of_each_kind() -> None:
    for dtype in ("bfloat16", *FLOATS8):
        bits = torch.ones((), dtype=getattr(torch, dtype)).view(torch.int16 if dtype == "bfloat16" else torch.uint8)
        found = decoded(encoded((RawValues(0, bits.numpy()), dtype))).array(0)
        assert found.shape == () and found == 1


@pytest.mark.parametrize("dtype", [name for name in RAW_DTYPES if not name.startswith("float8_e8m0")])
def test_the_safetensors_package_reads_our_files(dtype: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    kind = getattr(torch, dtype)
    value = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(kind)
    is_bits = "float8" in dtype or dtype == "bfloat16"
    bits = value.view(torch.uint8 if value.element_size() == 1 else torch.int16) if is_bits else value
    path = tmp_path / "x.safetensors"
    path.write_bytes(encoded((RawValues(12, bits.numpy(), [4, 9]), dtype)))
    found = load_file(path)["12"]
    assert found.dtype == kind and torch.equal(found.to(torch.complex64), value.to(torch.complex64))
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"samples": '{"12":[4,9]}', "pairs": "[]"}


def test_we_read_files_of_the_safetensors_package(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"0": np.arange(6, dtype=np.float32).reshape(2, 3), "1": np.array(True)}, tmp_path / "x.safetensors")
    file = decoded((tmp_path / "x.safetensors").read_bytes())
    assert file.array(0).tolist() == [[0, 1, 2], [3, 4, 5]] and file.array(1).item() is True


@pytest.mark.parametrize(
    ("array", "dtype", "message"),
    [
        (np.array(["a"]), "text", "have no name in safetensors"),
        (np.zeros(3, np.float32), "bfloat16", "the bits of bfloat16 were expected, not an array of float32"),
        (np.zeros(3, np.longdouble), "longdouble", "have no name in safetensors"),
    ],
)
def test_what_cannot_be_stored(array: np.ndarray, dtype: str, message: str) -> None:
    with pytest.raises(CannotStore, match=message):
        tensors.check(array, dtype)


def test_what_cannot_be_stored_becomes_a_gap_and_the_rest_is_written(tmp_path: Path) -> None:
    from endoscope.store.reader import RankReader

    writer = TrialWriter.create(tmp_path, "trial")
    odd = writer.key_id(Key("odd", dtype="text"))
    fine = writer.key_id(Key("fine"))
    raw = [RawValues(odd, np.array(["a"])), RawValues(fine, np.ones(2, np.float32)), RawValues(fine, np.zeros(1))]
    writer.write_step(step_record(writer, 0, raw=raw, keys=[], measured=None))
    reader = RankReader(writer.path)
    reader.refresh()
    gaps = [(row["node"], row["reason"]) for row in reader.table("gaps").to_pylist()]
    assert gaps[0][0] == "odd" and "no name in safetensors" in gaps[0][1]
    assert gaps[1][0] == "fine" and "came twice" in gaps[1][1]
    data = reader.whole("raw/0-0.safetensors")
    assert data is not None
    assert TensorFile(reader.folder / "raw/0-0.safetensors", data).array(fine).tolist() == [1, 1]


@given(cut=st.integers(0, 200), flipped=st.integers(0, 100), bit=st.integers(0, 7))
def test_damaged_files_are_refused_or_read_but_never_crash(cut: int, flipped: int, bit: int) -> None:
    whole = encoded((RawValues(0, np.arange(4, dtype=np.float32), [0, 1, 2, 3]), "float32"))
    for data in (whole[:cut], whole[:flipped] + bytes([whole[flipped] ^ (1 << bit)]) + whole[flipped + 1 :]):
        with contextlib.suppress(ValueError):
            file = decoded(data)
            for key in file.entries:
                file.array(key)
