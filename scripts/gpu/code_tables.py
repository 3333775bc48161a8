"""Tables of figures that need no GPU: machine code, passes one by one, compile time, the simulator's rate."""

from .results import Results, Row, table

FOLDER = "code"


def origin(results: Results, name: str, by: str) -> str:
    """The lines in front of a table: what counted or ran, the date, the file and the command."""
    row = results.rows(f"{FOLDER}/{name}.csv")[0]
    return f"{by}, {row['date']}; [{name}.csv](results/{FOLDER}/{name}.csv):\n\n    {row['command']}\n\n"


def cutlass(results: Results, row: Row) -> Row:
    """The code of CUTLASS for the same tile; empty where none was counted."""
    keys = ("target", "tile", "sums")
    for other in results.rows(f"{FOLDER}/cutlass.csv"):
        same_order = other["a"] in ("", row["a"]) and other["b"] in ("", row["b"])
        if same_order and all(other[key] == row[key] for key in keys):
            return other
    return {"instructions": "", "registers": ""}


def span(rows: list[Row], key: str) -> str:
    """`137 to 140`, or the only value."""
    found = sorted({int(row[key]) for row in rows})
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def sm_80(results: Results) -> str:
    """The main loop for sm_80: all orders of the operands in a row."""
    rows = results.rows(f"{FOLDER}/gemm_sm80.csv")
    lines = []
    for tile, stages, sums in sorted({(row["tile"], row["stages"], row["sums"]) for row in rows}, key=lambda key: (key[0], key[2] != "f32")):
        own = [row for row in rows if (row["tile"], row["stages"], row["sums"]) == (tile, stages, sums)]
        counts = [span(own, key) for key in ("mma", "ldsm", "ldgsts", "bar", "instructions", "registers")]
        lines.append([f"{tile}, {stages}", sums, *counts, cutlass(results, own[0])["instructions"]])
    head = ["tile, stages", "sums", "HMMA", "LDSM.x4", "LDGSTS.128", "BAR", "instructions, by operand order", "registers", "CUTLASS 2.11"]
    return origin(results, "gemm_sm80", f"ptxas {rows[0]['assembler']}") + table(head, lines)


def sm_70(results: Results) -> str:
    """The main loop for sm_70."""
    rows = results.rows(f"{FOLDER}/gemm_sm70.csv")
    lines = []
    for row in sorted(rows, key=lambda row: (row["sums"], row["a"] == row["b"], row["a"])):
        beside = cutlass(results, row)
        least = min((int(n) for n in beside["instructions"].split(", ") if n), default=0)
        own = f"**{row['instructions']}**" if int(row["instructions"]) <= least else row["instructions"]
        counts = [row[key] for key in ("mma", "ldg", "sts", "lds", "bar", "registers")]
        lines.append([row["sums"], f"{row['a']}, {row['b']}", own, beside["instructions"], *counts, beside["registers"], row["spilled"]])
    head = ["sums", "A, B", "instructions", "CUTLASS", "HMMA", "LDG.128", "STS.128", "LDS.128", "BAR", "registers", "CUTLASS", "bytes spilled"]
    return origin(results, "gemm_sm70", f"ptxas {rows[0]['assembler']}") + table(head, lines)


def ladder(results: Results) -> str:
    """Passes one after the other."""
    rows = results.rows(f"{FOLDER}/ladder_sm70.csv")
    head = ["passes on", "product", "bytes per access, global / shared", "most extra wavefronts of a shared access", "barriers", "stages", "instructions", "registers"]

    def line(row: Row) -> list[str]:
        product = "scalar" if row["atom"] == "fma" else row["atom"]
        return [row["passes"], product, f"{row['global_bytes']} / {row['shared_bytes']}", row["conflicts"], row["barriers"], row["slots"], row["instructions"], row["registers"]]

    return origin(results, "ladder_sm70", f"ptxas {rows[0]['assembler']}") + table(head, map(line, rows))


def compile_time(results: Results) -> str:
    """Milliseconds from text to PTX."""
    rows = results.rows(f"{FOLDER}/compile_time.csv")
    least = float(rows[0]["ms"])

    def line(row: Row) -> list[str]:
        over = float(row["ms"]) / least
        name = f"`{row['program']}`" if row["program"].startswith("--") else row["program"]
        return [name, row["ms"], "1" if over == 1 else f"{over:.1f}"]

    return origin(results, "compile_time", rows[0]["machine"]) + table(["program", "ms", "over `--version`"], map(line, rows))


def simulator_rate(results: Results) -> str:
    """Millions of warp instructions a second."""
    rows = results.rows(f"{FOLDER}/simulator_rate.csv")
    return origin(results, "simulator_rate", rows[0]["machine"]) + table(["loop", "million warp instructions a second"], ([row["loop"], row["rate"]] for row in rows))


TABLES = {
    "code sm_80": sm_80, "code sm_70": sm_70, "ladder": ladder, "compile time": compile_time, "simulator rate": simulator_rate,
}  # fmt: skip
