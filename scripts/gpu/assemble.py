"""What the assembler says of a kernel, for runs without a GPU."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .contract_host import CompileError, ContractError, LaunchFile


def find_ptxas() -> str | None:
    """`TILEC_PTXAS`, what scripts/fetch_tools.sh fetched, or the one on the PATH."""
    cache = pathlib.Path(os.environ.get("TILEC_TOOLS", pathlib.Path.home() / ".cache/tilec/tools"))
    named = os.environ.get("TILEC_PTXAS")
    if named is not None and not os.access(named, os.X_OK):
        raise FileNotFoundError(f"TILEC_PTXAS names {named}, which is no program")
    fetched = next((str(path) for name in ("ptxas-13", "ptxas-12.9") if os.access(path := cache / name / "ptxas", os.X_OK)), None)
    return named or fetched or shutil.which("ptxas")


def assemble(ptxas: str, kernels: LaunchFile) -> str:
    """Registers and spills of every kernel. Raises what the assembler refuses."""
    target = next(iter(kernels.kernels.values())).data["target"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernel.ptx")
        path.write_text(kernels.ptx)
        command = [ptxas, "-v", f"-arch={target}", str(path), "-o", f"{path}.cubin"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise RuntimeError(f"ptxas: {done.stderr.strip()[:300]}")
    said = done.stdout + done.stderr
    registers = "/".join(re.findall(r"Used (\d+) registers", said))
    spills = "/".join(re.findall(r"(\d+) bytes spill stores", said))
    warnings = [line for line in said.splitlines() if "warning" in line.lower()]
    return f"{registers} registers, {spills} bytes spilled" + "".join(f"; {line}" for line in warnings)


def dry(cases: Iterable[Mapping[str, Any]], compile_case: Callable[[Any], tuple[LaunchFile, str]]) -> int:
    """Everything but the launch: compiles each case and assembles what is new. The exit status says whether all went well."""
    ptxas, failed, done = find_ptxas(), 0, dict[str, str]()
    for case in cases:
        try:
            kernels, words = compile_case(case)
            if ptxas and words not in done:
                done[words] = assemble(ptxas, kernels)
            print(f"{case['case']}: {words}; {done.get(words, 'no ptxas')}")
        except (CompileError, ContractError, ValueError, RuntimeError) as error:
            failed += 1
            print(f"{case['case']}: {type(error).__name__}: {str(error)[:400]}")
    return int(failed > 0)
