"""Exceptions of tilec."""

from __future__ import annotations

import json


class CompileError(Exception):
    """A program that is refused. The text is what the `tilec` command shows, with the caret."""

    def __init__(self, text: str, diagnostics: str = "") -> None:
        super().__init__(text)
        self.diagnostics: list[dict] = [json.loads(line) for line in diagnostics.splitlines() if line.startswith("{")]
        """What is said, as data: severity, code, message, places."""


class LaunchError(ValueError):
    """Arguments that break the launch contract of a kernel; nothing was launched."""


class CudaError(RuntimeError):
    """The CUDA driver is absent, or refused a call."""


class SimulationError(RuntimeError):
    """The simulator found something that a kernel must not do, with the statement that did it."""


class CompileWarning(UserWarning):
    """What the compiler warns of."""
