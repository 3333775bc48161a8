"""Runs cases in a child process with a time limit for each, since a kernel that hangs cannot be stopped from within.

The child is the same script with `--child`: it reads a case as a line of JSON, answers with a line of JSON, and stays for the next
case, so that the CUDA context is made once. A case that takes too long, or after which the child is gone, is answered with an
`error`, and the next case gets a new child.
"""

import json
import os
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Case = dict[str, Any]


def answer_cases(work: Callable[[Case], Case]) -> int:
    """The child's loop. What `work` prints goes to standard error. It ends where the device is not usable any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = work(json.loads(line))
        except Exception as error:  # noqa: BLE001  a case that fails is a row of the table
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        fatal = "error" in answer and not _usable()
        answers.write(json.dumps({**answer, "fatal": fatal}) + "\n")
        answers.flush()
        if fatal:
            return 1
    return 0


def _usable() -> bool:
    """Whether the context survived: an illegal access makes every later call fail."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def run_cases(command: list[str], cases: Iterable[Case], seconds: float, budget: float = float("inf")) -> Iterator[tuple[Case, Case]]:
    """Every case with its answer, in order. `seconds`: limit of a case, start of the child included. `budget`: of all cases."""
    child: subprocess.Popen[bytes] | None = None
    end = time.monotonic() + budget
    try:
        for case in cases:
            left = end - time.monotonic()
            if left <= 0:
                yield case, {"error": "not measured: the time is spent"}
                continue
            if child is None:
                child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            answer = _ask(child, case, min(seconds, left))
            if answer.pop("fatal", False):
                _stop(child)
                child = None
            yield case, answer
    finally:
        if child is not None:
            _stop(child)


def _ask(child: "subprocess.Popen[bytes]", case: Case, seconds: float) -> Case:
    assert child.stdin is not None and child.stdout is not None
    end, read = time.monotonic() + seconds, b""
    try:
        child.stdin.write(json.dumps(case).encode() + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        return {"error": f"the process is gone, status {child.wait()}", "fatal": True}
    while not read.endswith(b"\n"):
        ready, _, _ = select.select([child.stdout], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return {"error": f"no answer within {seconds:.0f} s: the kernel hangs, or the limit is too low", "fatal": True}
        part = os.read(child.stdout.fileno(), 65536)
        if not part:
            return {"error": f"the process ended with status {child.wait()}", "fatal": True}
        read += part
    return dict(json.loads(read))


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """Ends this child, by its own handle."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(timeout=3)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
