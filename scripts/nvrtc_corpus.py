"""CUDA kernels to PTX with NVRTC, through its C interface; called by nvrtc_corpus.sh.

    nvrtc_corpus.py unpack WHEELS OUT           the library and the headers out of the wheels
    nvrtc_corpus.py build CACHE FOLDER [--check] [NAME ...]
"""

import ctypes
import pathlib
import re
import sys
import zipfile


def unpack(wheels, out):
    """The library with its builtins to OUT/lib, the headers that NVRTC may include to OUT/include."""
    for wheel in sorted(pathlib.Path(wheels).glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                parts = name.split("/")
                library = re.fullmatch(r"libnvrtc(-builtins)?\.so\.[0-9.]+", parts[-1])
                if library:
                    target = pathlib.Path(out, "lib", parts[-1])
                elif "include" in parts and not name.endswith("/"):
                    target = pathlib.Path(out, "include", *parts[parts.index("include") + 1 :])
                else:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))


class Nvrtc:
    def __init__(self, cache):
        self.include = cache / "include"
        # The builtins are looked for by name alone, so they are loaded first.
        ctypes.CDLL(str(next((cache / "lib").glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(str(next((cache / "lib").glob("libnvrtc.so.*"))))
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(self, result):
        if result:
            sys.exit(self.lib.nvrtcGetErrorString(result).decode())

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.check(getattr(self.lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.lib, f"nvrtcGet{what}")(program, text))
        return text.value.decode()

    def compile(self, path):
        source = path.read_text()
        target = re.search(r"^// target: (sm_\d+)$", source, re.M)
        arch = target.group(1).replace("sm_", "compute_") if target else "compute_70"
        options = [f"--gpu-architecture={arch}", "-lineinfo", "-std=c++17", f"--include-path={self.include}"]
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        program = ctypes.c_void_p()
        self.check(
            self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), path.name.encode(), 0, None, None)
        )
        failed = self.lib.nvrtcCompileProgram(program, len(options), array)
        log = [line for line in self.text(program, "ProgramLog").splitlines() if line and "are deprecated" not in line]
        if log:
            print(f"{path.name}:", *log, sep="\n", file=sys.stderr)
        self.check(failed)
        ptx = self.text(program, "PTX")
        self.check(self.lib.nvrtcDestroyProgram(ctypes.byref(program)))
        return tidy(ptx, self.include)


def tidy(ptx, include):
    """Without trailing spaces and runs of empty lines; paths of this machine cut off."""
    ptx = ptx.replace(f"{include}/", "").replace(f"{pathlib.Path.cwd()}/", "")
    ptx = re.sub(r"[ \t]+$", "", ptx, flags=re.M)
    return re.sub(r"\n\n+", "\n\n", ptx).strip() + "\n"


def build(cache, folder, arguments):
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"]
    nvrtc = Nvrtc(pathlib.Path(cache).absolute())
    folder = pathlib.Path(folder)
    paths = [folder / f"{name}.cu" for name in names] or sorted(folder.glob("*.cu"))
    different = 0
    for path in paths:
        ptx = nvrtc.compile(path)
        output = path.with_suffix(".ptx")
        if output.exists() and output.read_text() == ptx:
            continue
        print(f"{output}: {'differs' if check else 'written'}, {len(ptx)} bytes")
        different += 1
        if not check:
            output.write_text(ptx)
    print(f"{len(paths)} kernels, {different} {'differ' if check else 'written'}")
    return 1 if check and different else 0


if sys.argv[1:2] == ["unpack"] and len(sys.argv) == 4:
    unpack(sys.argv[2], sys.argv[3])
elif sys.argv[1:2] == ["build"] and len(sys.argv) >= 4:
    sys.exit(build(sys.argv[2], sys.argv[3], sys.argv[4:]))
else:
    sys.exit(__doc__)
