"""`endoscope try`: scripts that know nothing of Endoscope, each run plainly and under `try`."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import endoscope
from endoscope.query.recording import Recording
from tests.house.tree import SRC

SCRIPTS = Path(__file__).with_name("scripts")
ARGUMENTS: dict[str, list[str]] = {"digits": [], "lstm": ["--steps", "12"], "gan": [], "trainer": ["."], "lit": []}
NODES = {
    "digits": {"0", "1", "2", "0.weight", "loss", "target"},
    "lstm": {"embedding", "lstm", "dropout", "head", "head.weight"},
    "gan": {"0", "2", "Sequential.0", "Sequential.2"},
    "trainer": {"bert.encoder.layer.1.attention.self", "classifier"},
    "lit": {"encoder.0", "decoder.2", "decoder.2.weight"},
}
STATUS = {"lstm": 7}
LINES = {
    "digits": ["run.watch(net, opt)"],
    "lstm": ["run.watch(lm, optim)"],
    "gan": ["run.watch(generator, opt_g)", "run.watch(critic, opt_d)"],
    "trainer": ["run.watch(classifier)"],
    "lit": ["run.watch(model)"],
}


def run(folder: Path, *command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder, capture_output=True, text=True, env=environment(), timeout=300,
    )  # fmt: skip


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}


def written(folder: Path, code: str) -> Path:
    file = folder / "mine.py"
    file.write_text(code)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("name", ARGUMENTS)
def test_results_are_those_of_the_plain_script_and_the_model_is_recorded(name: str, tmp_path: Path) -> None:
    if name == "lit":
        pytest.importorskip("lightning", reason="Lightning is not installed: pip install lightning")
    script, status = SCRIPTS / f"{name}.py", STATUS.get(name, 0)
    plain = run(tmp_path, script, *ARGUMENTS[name])
    tried = run(tmp_path, "-m", "endoscope", "try", "--no-show", script, *ARGUMENTS[name])
    assert (plain.returncode, tried.returncode) == (status, status), tried.stderr
    if name == "trainer":  # the line before the last has times in it
        plain.stdout, tried.stdout = (one.stdout.splitlines()[-1] for one in (plain, tried))
    assert tried.stdout == plain.stdout
    recording = endoscope.open(tmp_path / "runs" / name)
    assert isinstance(recording, Recording)
    assert recording.steps[0].number == 0
    assert set(recording.nodes) >= NODES[name]
    assert recording.graph(step=0) is not None
    for line in LINES[name]:
        assert f"    {line}\n" in tried.stderr
    assert "Traceback" not in tried.stderr


def test_the_lines_to_add_work_where_they_are_said_to_belong(tmp_path: Path) -> None:
    code = (SCRIPTS / "digits.py").read_text().splitlines(keepends=True)
    tried = run(tmp_path, "-m", "endoscope", "try", "--no-show", SCRIPTS / "digits.py")
    said = tried.stderr.splitlines()
    lines = [line.removeprefix("    ") + "\n" for line in said if line.startswith("    ") and "float(" not in line]
    assert [line.split("(")[0].strip() for line in lines] == ["import endoscope", "run = endoscope.Run", "run.watch"]
    loop = next(number for number, line in enumerate(code) if line.startswith("for "))
    mine = written(tmp_path, "".join([*code[:loop], *lines, *code[loop:]]))
    assert run(tmp_path, mine).returncode == 0
    assert (
        "net(x[batch])" in code[int(next(one for one in said if "before line" in one).split("line ")[1].split()[0]) - 1]
    )
    assert len(endoscope.open(tmp_path / "runs")) == 2


def test_the_program_that_pip_installs_is_no_part_of_the_script(tmp_path: Path) -> None:
    program = tmp_path / "endoscope"
    program.write_text("import sys\nfrom endoscope.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    tried = run(tmp_path, program, "try", "--no-show", SCRIPTS / "digits.py")
    assert "    run.watch(net, opt)\n" in tried.stderr
    assert re.search(r"add three lines to \S*digits\.py, before line \d+", tried.stderr), tried.stderr


def test_an_error_of_the_model_has_no_frames_of_ours(tmp_path: Path) -> None:
    code = "import torch\nm = torch.nn.Linear(2, 2)\no = torch.optim.SGD(m.parameters())\nm(torch.ones(1, 3))"
    mine = written(tmp_path, code)
    plain, tried = run(tmp_path, mine), run(tmp_path, "-m", "endoscope", "try", "--no-show", mine)
    assert tried.returncode == 1 and "m(torch.ones(1, 3))" in tried.stderr and str(SRC) not in tried.stderr
    errors = [line for line in tried.stderr.splitlines() if line.startswith("RuntimeError")]
    assert errors == plain.stderr.splitlines()[-1:]


NOTHING = {
    "print('hello')": "never imported torch in this process",
    "import torch\nw = torch.zeros(3, requires_grad=True)\no = torch.optim.SGD([w])\nw.sum().backward()\no.step()":
        "called no torch.nn.Module with parameters, so there was nothing to record; SGD with 1 parameter took 1 step.",
    "import torch\nm = torch.nn.Linear(2, 2).eval()\no = torch.optim.SGD(m.parameters())\nm(torch.ones(1, 2))":
        "called Linear once, but in evaluation mode only",
    "import torch\nm = torch.nn.Linear(2, 2)\nm(torch.ones(1, 2))\nm(torch.ones(1, 2))":
        "called Linear 2 times in training mode, but it made no torch.optim.Optimizer",
    "import torch\nm, n = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)\no = torch.optim.SGD(n.parameters())\n"
    "m(torch.ones(1, 2))\no.step()": "but none of them holds a parameter of Linear",
}  # fmt: skip


@pytest.mark.parametrize("code", NOTHING, ids=lambda code: NOTHING[code][:40])
def test_where_nothing_is_found_a_sentence_says_what_was_seen(code: str, tmp_path: Path) -> None:
    tried = run(tmp_path, "-m", "endoscope", "try", written(tmp_path, code))
    assert tried.returncode == 0
    assert NOTHING[code] in tried.stderr and "Traceback" not in tried.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("import torch\ndef f():\n    raise ValueError('mine')\nf()", []),
        ("def f(:", []),
        ("import sys\nsys.exit('no, ' + sys.argv[1])", ["--help"]),
        ("raise KeyboardInterrupt", []),
        ("import endoscope\nendoscope.open('nowhere')", []),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('mine') from error", []),
        ("import sys, pickle\nclass A: pass\nprint(__name__, sys.argv, sys.path[0], pickle.dumps(A()))", ["a b"]),
        ("import atexit\nname = 'still there'\natexit.register(lambda: print(name, __import__('__main__').name))", []),
    ],
)  # fmt: skip
def test_output_status_and_exceptions_are_those_of_the_script(code: str, arguments: list[str], tmp_path: Path) -> None:
    mine = written(tmp_path, code)
    plain, tried = run(tmp_path, mine, *arguments), run(tmp_path, "-m", "endoscope", "try", mine, *arguments)
    assert (tried.returncode, tried.stdout) == (plain.returncode, plain.stdout)
    said = [line for line in tried.stderr.splitlines() if not line.startswith("Endoscope: ")]
    assert said == plain.stderr.splitlines()


def test_torch_is_not_imported_before_the_script_does_it(tmp_path: Path) -> None:
    """What it sets in the environment before that must still count."""
    mine = written(tmp_path, "import sys\nprint([name for name in ('torch', 'numpy') if name in sys.modules])")
    assert run(tmp_path, "-m", "endoscope", "try", mine).stdout == "[]\n"


def test_nothing_is_left_on_torch(tmp_path: Path) -> None:
    code = (
        "import torch\ncall, init = torch.nn.Module.__call__, torch.optim.Optimizer.__init__\n"
        "m = torch.nn.Linear(2, 2)\no = torch.optim.SGD(m.parameters())\nm(torch.ones(1, 2)).sum().backward()\n"
        "Module, Optimizer = torch.nn.Module, torch.optim.Optimizer\n"
        "print(Module.__call__ is call, Module.__call__ is Module._wrapped_call_impl)\n"
        "print(Optimizer.__init__ is init, hasattr(Optimizer.__init__, '__wrapped__'))\n"
    )
    tried = run(tmp_path, "-m", "endoscope", "try", "--no-show", written(tmp_path, code))
    assert tried.stdout == "False True\nFalse False\n", tried.stderr


def test_a_script_that_records_itself_is_not_recorded_twice(tmp_path: Path) -> None:
    code = (
        "import torch, endoscope\nm = torch.nn.Linear(2, 2)\no = torch.optim.SGD(m.parameters())\n"
        "run = endoscope.Run('own')\nrun.watch(m, o)\nm(torch.ones(1, 2)).sum().backward()\no.step()\n"
    )
    tried = run(tmp_path, "-m", "endoscope", "try", "--no-show", written(tmp_path, code))
    assert "the script makes an endoscope.Run of its own" in tried.stderr
    assert not (tmp_path / "runs").exists() and len(endoscope.open(tmp_path / "own" / "trial").steps) == 1


@pytest.mark.slow
def test_under_torchrun_the_first_rank_records(tmp_path: Path) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    plain = run(tmp_path, *launcher, SCRIPTS / "ddp.py")
    tried = run(tmp_path, *launcher, "-m", "endoscope", "try", "--no-show", SCRIPTS / "ddp.py")
    assert tried.returncode == 0, tried.stderr
    assert _said_by_ranks(tried.stdout) == _said_by_ranks(plain.stdout) != []
    recording = endoscope.open(tmp_path / "runs" / "ddp")
    assert len(recording.steps) > 5 and {"0", "2.weight"} <= set(recording.nodes)


def _said_by_ranks(text: str) -> list[str]:
    """Two processes write to one pipe, so a line of one may end up inside of a line of the other."""
    return sorted(re.findall(r"rank \d: \d+\.\d+", text))


def test_what_cannot_be_run_is_a_sentence(tmp_path: Path) -> None:
    missing = run(tmp_path, "-m", "endoscope", "try", "nothing.py")
    assert missing.returncode == 1 and missing.stderr.startswith("endoscope: There is no file nothing.py in ")
    folder = run(tmp_path, "-m", "endoscope", "try", ".")
    assert folder.returncode == 1 and "is a folder. Type the script that trains" in folder.stderr


# ---- the page ------------------------------------------------------------------------------------

UNTIL_TOLD = """
import os, torch
body = torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
while not os.path.exists("stop"):
    optimizer.zero_grad()
    body(torch.randn(16, 20)).square().mean().backward()
    optimizer.step()
"""


def lines_of(stream: object) -> Iterator[str]:
    """Lines of a process; of a terminal, too, which raises an error when nobody is at the other end any more."""
    try:
        yield from stream  # type: ignore[misc]
    except OSError:
        return


def fetch(address: str, path: str) -> object:
    home, _, token = address.partition("#")[0].partition("?token=")
    asked = urllib.request.Request(home + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


def test_the_page_is_there_while_the_script_runs_and_ends_with_it(tmp_path: Path) -> None:
    mine = written(tmp_path, UNTIL_TOLD)
    command = [sys.executable, "-m", "endoscope", "try", str(mine)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        said = lines_of(process.stderr)
        address = next(line for line in said if "the page is at" in line).split()[-1]
        trial = fetch(address, "api/trials/mine")
        (tmp_path / "stop").touch()
        rest = "".join(said)
    assert process.returncode == 0
    assert address.endswith("#v=1&tab=graph&trial=mine")
    assert isinstance(trial, dict) and trial["steps"]
    assert "Endoscope: what looks wrong:  endoscope check runs/mine" in rest
    assert "run.watch(body, optimizer)" in rest
    with pytest.raises(OSError):
        fetch(address, "api/catalog")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_at_a_terminal_the_page_stays_until_somebody_ends_it(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "endoscope", "try", str(SCRIPTS / "lstm.py"), "--steps", "5"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # jobs in the background ignore it
    ) as process, os.fdopen(ours, "r", errors="replace") as terminal:  # fmt: skip
        os.close(theirs)
        address, ended = "", False
        for line in lines_of(terminal):
            address = line.split()[-1] if "the page is at" in line else address
            ended = ended or "Press Ctrl+C to close the page" in line
            if address and ended and process.poll() is None:
                trial = fetch(address, "api/trials/lstm")
                process.send_signal(signal.SIGINT)
                break
        process.wait(60)
    assert isinstance(trial, dict) and process.returncode == 7
    with pytest.raises(OSError):
        fetch(address, "api/catalog")
