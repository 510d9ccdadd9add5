"""A file without torch, without its model, damaged, of another version; and with the model."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, CannotReplay, EndoscopeError, NotATrace, ValueNotKept
from tests import models
from tests.house.tree import run_python
from tests.trace_files.equality import differences


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    net = models.RecurrentNetwork()
    with endoscope.tracing(net, gradients=True) as trace:
        net(torch.rand(3, 5)).sum().backward()
    return trace.save(tmp_path_factory.mktemp("files") / "x.trace")


# ---- without torch ---------------------------------------------------------------------------------------------------


def every_type(x: Tensor) -> list[Tensor]:
    types = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.int64, torch.bool)
    return [x.to(one) for one in types] + [x.t(), x.to(torch.complex128), x[:1].expand(4, 3)]


LOOK = """
import json, sys, endoscope
import numpy as np
trace = endoscope.load({path!r})
told = [[op.label, str(op.dtype), str(op.device), list(op.shape), type(op.value).__module__, op.value.dtype.name,
         np.asarray(op.value).astype(complex).real.tolist()] for op in trace.ops]
print(json.dumps(told))
print(trace.graph_hash, len(str(trace)), len(trace.draw()), trace.ops[1].function.kwargs, trace.random[0].state.dtype)
trace._repr_html_(), trace.ops[1]._repr_html_(), trace.to_html() if hasattr(trace, "to_html") else None
assert sys.modules.get("torch") is None
"""


@pytest.mark.parametrize("blocked", ["", "import sys; sys.modules['torch'] = None\n"])
def test_without_torch_values_are_arrays_with_the_same_numbers(blocked: str, tmp_path: Path) -> None:
    x = torch.tensor([[0.5, -1.25, 3.0], [448.0, 1e-3, 0.0]])
    trace = endoscope.trace(every_type, x)
    done = run_python(blocked + LOOK.format(path=str(trace.save(tmp_path / "x.trace"))))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    for op, (label, dtype, device, shape, module, array, numbers) in zip(trace.ops, json.loads(first), strict=True):
        assert (label, dtype, device, tuple(shape)) == (op.label, str(op.dtype), str(op.device), op.shape)
        assert module == "numpy"
        expected = {"bfloat16": "float32", "float8_e4m3fn": "float32", "float8_e5m2": "float32"}
        name = dtype.removeprefix("torch.")
        assert array == expected.get(name, name)
        assert torch.tensor(numbers).to(torch.float64).equal(op.value.to(torch.complex128).real)
    assert second.split()[0] == trace.graph_hash


def test_the_function_loads_without_torch_and_says_what_needs_it(path: Path) -> None:
    code = f"""
import sys; sys.modules["torch"] = None
import endoscope
trace = endoscope.load({str(path)!r})
assert trace["fc.weight"].gradient.shape == (5, 5)
assert repr(trace.ops[0].metas[0].shape) == "torch.Size([3, 5])"
for ask in (trace.validate, lambda: trace.rerun({{}}), lambda: trace.ops[1].function.func):
    try:
        ask()
    except endoscope.errors.EndoscopeError as error:
        assert "PyTorch" in str(error) or "model=model" in str(error), error
    else:
        raise SystemExit("no error")
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


# ---- damaged ---------------------------------------------------------------------------------------------------------


def everything(path: Path) -> None:
    trace = endoscope.load(path)
    (
        str(trace),
        trace.graph_hash,
        trace.draw(),
        trace.modules,
        trace.loops,
        trace.decisions,
        trace.result,
        trace.warnings,
    )
    for op in trace.everything():
        str(op)
        op.function.args, op.function.random_state
        with contextlib.suppress(ValueNotKept):
            op.outputs


def test_bytes_that_were_changed(path: Path, tmp_path: Path) -> None:
    """Either an error of ours that names the file, or nothing that matters was changed."""
    data, source, target = path.read_bytes(), random.Random(0), tmp_path / "damaged.trace"
    noticed = 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(source.choice((1, 1, 8))):
            damaged[source.randrange(len(data))] = source.randrange(256)
        target.write_bytes(damaged)
        noticed += tried(target)
    assert noticed > 250


def tried(target: Path) -> bool:
    try:
        everything(target)
    except EndoscopeError as error:
        return str(target) in str(error)
    return False


def test_files_that_were_cut_off(path: Path, tmp_path: Path) -> None:
    data, target = path.read_bytes(), tmp_path / "cut.trace"
    for length in {0, 1, 3, 100, *range(0, len(data), max(1, len(data) // 40)), len(data) - 1}:
        target.write_bytes(data[:length])
        assert tried(target)


def rewritten(path: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The same file with other members, whose checksums fit: somebody has written it wrongly."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return target


def test_members_whose_numbers_lead_nowhere(path: Path, tmp_path: Path) -> None:
    source, target = random.Random(1), tmp_path / "forged.trace"
    for number in range(120):
        forge = forged_table if number % 2 else forged_header
        rewritten(path, target, lambda name, data, forge=forge: forge(name, data, source))  # type: ignore[misc]
        tried(target)  # whatever it is, it is an error of ours


def forged_table(name: str, data: bytes, source: random.Random) -> bytes:
    if not name.endswith(".arrow") or name == "tensors.arrow" or source.random() < 0.5:
        return data
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    column = source.randrange(table.num_columns)
    field = table.schema.field(column)
    if not table.num_rows or field.type not in (pa.int64(), pa.int8()):
        return data
    cells = table.column(column).to_pylist()
    cells[source.randrange(len(cells))] = source.choice((-2, -1, 0, 5, 100, None))
    table = table.set_column(column, field, pa.array(cells, field.type))
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def forged_header(name: str, data: bytes, source: random.Random) -> bytes:
    if name != "header.json":
        return data
    header = json.loads(data)
    key = source.choice([key for key in header if key != "format"])
    wrong = source.choice((None, [], {}, "text", [[]], -1, {"value": 10**9, "dtype": "torch.float32"}, [["x"]]))
    if source.random() < 0.3:
        del header[key]
    else:
        header[key] = wrong
    return json.dumps(header).encode()


def test_a_member_that_is_missing(path: Path, tmp_path: Path) -> None:
    for missing in zipfile.ZipFile(path).namelist():
        target = rewritten(path, tmp_path / "less.trace", lambda name, data, m=missing: None if name == m else data)  # type: ignore[misc]
        with pytest.raises(NotATrace, match=f"less.trace .*{missing}"):
            endoscope.load(target)


@pytest.mark.parametrize(("format_", "said"), [(2, "format 2.*pip install --upgrade"), ("x", "format 'x'")])
def test_another_version(path: Path, tmp_path: Path, format_: Any, said: str) -> None:
    def change(name: str, data: bytes) -> bytes:
        return json.dumps({**json.loads(data), "format": format_}).encode() if name == "header.json" else data

    with pytest.raises(NotATrace, match=said):
        endoscope.load(rewritten(path, tmp_path / "later.trace", change))


def test_what_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(NotATrace, match=r"There is no file .*nothing\.trace"):
        endoscope.load(tmp_path / "nothing.trace")
    with pytest.raises(NotATrace, match=r"is a folder.*endoscope\.open"):
        endoscope.load(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(NotATrace, match="is not a trace, or"):
        endoscope.load(tmp_path / "text")
    torch.save({}, tmp_path / "weights.pt")
    with pytest.raises(NotATrace, match=r"weights\.pt"):
        endoscope.load(tmp_path / "weights.pt")


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_file_is_what_it_says(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        assert set(archive.namelist()) == {
            "values.safetensors", "nodes.arrow", "slots.arrow", "calls.arrow", "tensors.arrow", "header.json",
        }  # fmt: skip
        import safetensors.numpy

        tensors = safetensors.numpy.load(archive.read("values.safetensors"))
    assert any(np.array_equal(one, endoscope.load(path)["fc.weight"].value) for one in tensors.values())


def test_memory_is_written_once(tmp_path: Path) -> None:
    x = torch.rand(1000, 100)
    trace = endoscope.trace(lambda x: x.t().reshape(10, -1).view(-1)[None].expand(50, -1), x)
    assert trace.save(tmp_path / "x.trace").stat().st_size < 3 * x.nbytes


def test_saving_where_nothing_can_be_written(path: Path, tmp_path: Path) -> None:
    trace = endoscope.trace(torch.sin, torch.zeros(2))
    with pytest.raises(BadArgument, match="is a folder"):
        trace.save(tmp_path)
    with pytest.raises(BadArgument, match="does not exist"):
        trace.save(tmp_path / "no" / "x.trace")
    with pytest.raises(BadArgument, match="still running"), endoscope.tracing() as running:
        running.save(tmp_path / "x.trace")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    before = endoscope.trace(torch.sin, torch.zeros(2)).save(tmp_path / "x.trace").read_bytes()
    (tmp_path / f".x.trace.{os.getpid()}.unfinished").symlink_to("/dev/full")
    with pytest.raises(endoscope.errors.StoreError, match=r"x\.trace cannot be written: No space left"):
        endoscope.trace(torch.cos, torch.zeros(100_000)).save(tmp_path / "x.trace")
    assert (tmp_path / "x.trace").read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["x.trace"]


def test_warnings_have_their_lines(tmp_path: Path) -> None:
    def generating(x: Tensor) -> Any:
        y = x + 1
        return (y * i for i in range(2))

    trace = endoscope.trace(generating, torch.zeros(2))
    loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
    assert trace.warnings and loaded.warnings == trace.warnings


def test_a_loaded_trace_is_saved_as_it_is(path: Path, tmp_path: Path) -> None:
    again = endoscope.load(path).save(tmp_path / "again.trace")
    assert again.read_bytes() == path.read_bytes()
    endoscope.load(again).save(again)
    assert again.read_bytes() == path.read_bytes()


def test_what_no_file_holds_is_said(tmp_path: Path) -> None:
    twice = torch.tensor([[0, 0], [1, 1]])
    trace = endoscope.trace(
        lambda x: torch.sparse_coo_tensor(twice, x, (3, 3), check_invariants=True).to_dense(), torch.ones(2)
    )
    loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
    with pytest.raises(ValueNotKept, match="is a sparse tensor"):
        loaded["sparse_coo_tensor_1"].value
    assert loaded["sparse_coo_tensor_1"].shape == (3, 3)
    assert loaded["to_dense_1"].value[0, 1] == 2


def special(x: Tensor) -> list[Tensor]:
    return [
        x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((2, 2)),
        torch.nested.nested_tensor([x[0], x[1, :2]]), torch.quantize_per_tensor(x, 0.1, 3, torch.qint8),
        torch.empty(3, device="meta"), torch.vmap(lambda row: row.sin() * 2)(x),
    ]  # fmt: skip


def test_tensors_of_special_kinds(tmp_path: Path) -> None:
    trace = endoscope.trace(special, torch.rand(4, 4))
    path = trace.save(tmp_path / "x.trace")
    assert not differences(trace, endoscope.load(path))
    done = run_python(f"""
import sys; sys.modules["torch"] = None
import endoscope
trace = endoscope.load({str(path)!r})
try:
    trace["to_sparse_1"].value
except endoscope.errors.ValueNotKept as error:
    assert "sparse tensor, which numpy does not know" in str(error)
else:
    raise SystemExit("no error")
str(trace["to_sparse_1"]), trace.to_html(), trace["sin_1"].value.shape
""")
    assert done.returncode == 0, done.stderr


def test_a_loaded_trace_does_not_need_its_source(tmp_path: Path) -> None:
    code = tmp_path / "net.py"
    code.write_text("def net(x):\n    if x.sum() > 0:\n        x = x * 2\n    return x\n")
    space: dict[str, Any] = {}
    exec(compile(code.read_text(), str(code), "exec"), space)
    trace = endoscope.trace(space["net"], torch.ones(2))
    told = [str(one) for one in trace.decisions]
    assert "x.sum() > 0" in told[0]
    loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
    code.unlink()
    assert [str(one) for one in loaded.decisions] == told


# ---- with the model --------------------------------------------------------------------------------------------------


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.drop = nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Dropout()

    def forward(self, x: Tensor, *, twice: bool = False) -> Tensor:
        x = self.drop(self.norm(self.fc(x)))
        return x * 2 if twice else x.add_(1)


def saved(trace: Trace, folder: Path) -> Path:
    return trace.save(folder / "model.trace")


def test_validate_and_rerun_with_the_model(tmp_path: Path) -> None:
    net = Dropping()
    trace = endoscope.trace(net, {"x": torch.rand(4, 5), "twice": True})
    before = torch.get_rng_state()
    loaded = endoscope.load(saved(trace, tmp_path), model=net)
    assert loaded.validate()
    assert loaded["linear_1"].function.func is nn.functional.linear
    mine, theirs = (one.rerun({"fc": endoscope.edits.zero()}) for one in (trace, loaded))
    assert torch.equal(mine.result, theirs.result) and not torch.equal(mine.result, trace.result)
    assert torch.equal(torch.get_rng_state(), before)
    assert endoscope.compare(trace, loaded).equal and not endoscope.compare(loaded, mine).equal


def test_a_file_that_was_read_before_torch_was_imported(tmp_path: Path) -> None:
    path = saved(endoscope.trace(shaken, torch.rand(4, 5)), tmp_path)
    code = f"""
import sys, endoscope
def shaken(x):
    return x.bernoulli().bfloat16()
trace = endoscope.load({str(path)!r}, model=shaken)
value = trace["bfloat16_1"].value
assert "torch" not in sys.modules
assert trace.validate(), trace.validate()
assert (trace["bfloat16_1"].value.float().numpy() == value).all()
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def shaken(x: Tensor) -> Tensor:
    return x.bernoulli().bfloat16()


def test_another_state_of_the_model(tmp_path: Path) -> None:
    net = models.Mlp()
    path = saved(endoscope.trace(net, torch.rand(2, 5)), tmp_path)
    with torch.no_grad():
        net.first.weight.add_(0.1)
    with pytest.raises(CannotReplay, match=r"first\.weight is not the one that the file holds"):
        endoscope.load(path, model=net).validate()
    with pytest.raises(CannotReplay, match="not the model of the trace"):
        endoscope.load(path, model=lambda x: x.sin()).validate()
    with pytest.raises(BadArgument, match="cannot be called"):
        endoscope.load(path, model=3).validate()


def test_traces_that_cannot_be_taken_again(path: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotReplay, match="no arguments to run with"):
        endoscope.load(path, model=models.RecurrentNetwork()).validate()
    nothing = saved(endoscope.trace(models.Mlp(), torch.rand(2, 5), save="none"), tmp_path)
    with pytest.raises(CannotReplay, match="save='none'"):
        endoscope.load(nothing, model=models.Mlp()).validate()


def test_without_the_model(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "x.trace")
    loaded = endoscope.load(tmp_path / "x.trace")
    for ask in (loaded.validate, lambda: loaded.rerun({"fc": endoscope.edits.zero()}), lambda: loaded[1].function.func):
        with pytest.raises(CannotReplay, match=r"x\.trace, and a file holds no functions.*model=model"):
            ask()


def test_ten_thousand_operations_are_read_at_once(tmp_path: Path) -> None:
    """Not their values: those of a file whose numbers are gone can still be asked for everything else."""

    def long(x: Tensor) -> Tensor:
        for _ in range(5000):
            x = x.sin() + 1
        return x

    saved_at = endoscope.trace(long, torch.rand(3)).save(tmp_path / "x.trace")
    loaded = endoscope.load(saved_at)
    saved_at.unlink()
    assert len(loaded.ops) == 10_002 and loaded["sin_1:5000"].parents[0].label == "add_1_2:4999"
    with pytest.raises(NotATrace, match="cannot be read any more"):
        loaded[5].value


def test_numbers_of_numpy_come_back_as_they_were(tmp_path: Path) -> None:
    def reduced(x: Tensor) -> Any:
        return x.sum(0, keepdim=bool(np.False_)), np.False_, np.int64(2**53 + 1), np.float32(0.1)

    trace = endoscope.trace(reduced, torch.ones(2))
    loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
    _, false, large, tenth = loaded.result
    assert false is np.False_ or false == np.False_
    assert large == 2**53 + 1 and tenth == np.float32(0.1) and type(tenth) is np.float32


def test_a_sparse_gradient_is_kept(tmp_path: Path) -> None:
    table = nn.Embedding(9, 4, sparse=True)
    trace = endoscope.trace(table, torch.tensor([1, 5]), gradients=True)
    trace.result.sum().backward()
    loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
    (weight,) = (op for op in loaded.everything() if op.kind == "parameter")
    assert weight.gradient is not None and float(torch.as_tensor(weight.gradient).sum()) == 8


def test_values_inside_of_vmap_in_a_folder(tmp_path: Path) -> None:
    x = torch.arange(12.0).view(4, 3)
    trace = endoscope.trace(lambda x: torch.vmap(torch.sin)(x), x, save=endoscope.to_folder(tmp_path / "values"))
    kept = endoscope.trace(lambda x: torch.vmap(torch.sin)(x), x)
    for one, other in zip(trace.everything(), kept.everything(), strict=True):
        if other.kept:
            assert np.array_equal(np.asarray(one.value), np.asarray(other.value)), one.label
    loaded = endoscope.load(trace.save(tmp_path / "x.trace"))
    for one, other in zip(loaded.everything(), kept.everything(), strict=True):
        if other.kept:
            assert np.array_equal(np.asarray(one.value), np.asarray(other.value)), one.label


def test_a_loaded_trace_equals_itself(path: Path) -> None:
    loaded = endoscope.load(path)
    assert not endoscope.compare(loaded, loaded).differing
