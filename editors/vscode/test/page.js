// The command line that makes the page in the side view is one that `tilec` takes. The editor itself is stood in for.
const assert = require("assert");
const { execFileSync } = require("child_process");
const fs = require("fs");
const Module = require("module");
const path = require("path");

const load = Module._load;
Module._load = (name, ...rest) => (["vscode", "vscode-languageclient/node"].includes(name) ? {} : load(name, ...rest));
const { xrayArguments } = require("../extension.js");

const args = xrayArguments("gemm.tile", { target: "sm_80", defines: { BM: 128 }, sizes: { M: 512, N: 512 } });
assert.deepStrictEqual(args, ["xray", "gemm.tile", "--target", "sm_80", "-D", "BM=128", "--for", "M=512,N=512"]);
assert.deepStrictEqual(xrayArguments("x.tile", {}), ["xray", "x.tile", "--target", "sm_70"]);

const root = path.join(__dirname, "..", "..", "..");
const tilec = process.env.TILEC || path.join(root, "target", "debug", "tilec");
if (fs.existsSync(tilec)) {
    const file = path.join(root, "examples", "gemm.tile");
    const sizes = { M: 512, N: 512, K: 512 };
    const html = execFileSync(tilec, xrayArguments(file, { target: "sm_80", sizes }), { encoding: "utf8", maxBuffer: 1 << 26 });
    assert.ok(html.startsWith("<!"), html.slice(0, 40));
    console.log("the page: fine");
} else {
    console.log(`skipped: the page: no ${tilec}`);
}
