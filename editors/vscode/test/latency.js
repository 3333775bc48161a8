// How long diagnostics take after a change, with the client of VS Code: over every example a word is broken in the middle of the file and mended, and the
// time until `publishDiagnostics` of each text is measured. `node test/latency.js [TILEC] [TIMES]`; docs/editor.md has the figures. No test: times depend on
// the machine.
const { spawn } = require("child_process");
const fs = require("fs");
const path = require("path");
const { createProtocolConnection, StreamMessageReader, StreamMessageWriter } = require("vscode-languageserver-protocol/node");

const root = path.join(__dirname, "..", "..", "..");
const tilec = process.argv[2] || path.join(root, "target", "release", "tilec");
const times = Number(process.argv[3] || 5);
const server = spawn(tilec, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
const connection = createProtocolConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));

const waiting = new Map();
connection.onNotification("textDocument/publishDiagnostics", ({ uri, version, diagnostics }) => {
    const key = `${uri} ${version}`;
    waiting.get(key)?.(diagnostics);
    waiting.delete(key);
});
const published = (uri, version) => new Promise((done) => waiting.set(`${uri} ${version}`, done));
const compiled = new Map();
connection.onNotification("tilec/compiled", ({ uri }) => compiled.get(uri)?.());

// In the middle of a file the first word of a statement: with a letter more it is none.
function broken(text) {
    const lines = text.split("\n");
    for (let i = lines.length >> 1; i < lines.length; i++) {
        const word = /^( +)(copy|let|var|for)\b/.exec(lines[i]);
        if (word) {
            lines[i] = lines[i].replace(word[2], `${word[2]}q`);
            return lines.join("\n");
        }
    }
    return `${text}q`;
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

async function main() {
    connection.listen();
    await connection.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities: {}, initializationOptions: { target: "sm_90a" } });
    await connection.sendNotification("initialized", {});
    const folder = path.join(root, "examples");
    const rows = [];
    for (const name of fs.readdirSync(folder).filter((f) => f.endsWith(".tile")).sort()) {
        const text = fs.readFileSync(path.join(folder, name), "utf8");
        const uri = `file:///${name}`;
        let version = 1;
        await connection.sendNotification("textDocument/didOpen", { textDocument: { uri, languageId: "tile", version, text } });
        const row = { name, wrong: [], right: [], all: [] };
        for (let i = 0; i < times; i++) {
            for (const [list, now, errors] of [[row.wrong, broken(text), true], [row.right, text, false]]) {
                const answer = published(uri, ++version);
                const whole = errors ? null : new Promise((done) => compiled.set(uri, done));
                const begin = performance.now();
                await connection.sendNotification("textDocument/didChange", { textDocument: { uri, version }, contentChanges: [{ text: now }] });
                const diagnostics = await answer;
                list.push(performance.now() - begin);
                if (errors !== diagnostics.some((d) => d.severity === 1)) throw new Error(`${name}: ${JSON.stringify(diagnostics)}`);
                if (whole) {
                    await whole;
                    row.all.push(performance.now() - begin);
                }
            }
        }
        await connection.sendNotification("textDocument/didClose", { textDocument: { uri } });
        rows.push(row);
    }
    const say = (what, of) => {
        const each = rows.map((row) => ({ name: row.name, ms: median(of(row)) })).sort((a, b) => a.ms - b.ms);
        const most = Math.max(...rows.flatMap(of));
        const worst = each.at(-1);
        console.log(`${what}: median ${each[each.length >> 1].ms.toFixed(1)} ms, slowest example ${worst.ms.toFixed(1)} ms (${worst.name}), slowest of all ${most.toFixed(1)} ms`);
    };
    console.log(`${rows.length} examples, ${times} times each`);
    say("a mistake is shown", (row) => row.wrong);
    say("it is gone", (row) => row.right);
    say("the passes have found nothing", (row) => row.all);
    await connection.sendRequest("shutdown");
    await connection.sendNotification("exit");
    connection.end();
}

main().catch((error) => {
    console.error(error);
    server.kill();
    process.exit(1);
});
