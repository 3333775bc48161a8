// Has the TextMate grammar tokenise every example: all of each line is in a token, and words and comments have the scopes that they should have.
const fs = require("fs");
const path = require("path");
const { Registry, parseRawGrammar, INITIAL } = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const here = path.join(__dirname, "..");
const examples = path.join(here, "..", "..", "examples");

async function main() {
    const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer;
    await oniguruma.loadWASM(wasm);
    const file = path.join(here, "syntaxes", "tile.tmLanguage.json");
    const registry = new Registry({
        onigLib: Promise.resolve({
            createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
            createOnigString: (text) => new oniguruma.OnigString(text),
        }),
        loadGrammar: async () => parseRawGrammar(fs.readFileSync(file, "utf8"), file),
    });
    const grammar = await registry.loadGrammar("source.tile");
    const wrong = [];
    const scopes = (text) => {
        let stack = INITIAL;
        return text.split("\n").map((line) => {
            const result = grammar.tokenizeLine(line, stack);
            stack = result.ruleStack;
            return result.tokens.map((t) => [line.slice(t.startIndex, t.endIndex), t.scopes.join(" ")]);
        });
    };
    const expect = (text, word, scope) => {
        const found = scopes(text).flat().find(([piece]) => piece === word);
        if (!found || !found[1].includes(scope)) wrong.push(`\`${word}\` in \`${text}\`: ${found}, not ${scope}`);
    };
    expect("kernel k(A: gmem f16[M])", "kernel", "keyword");
    expect("kernel k(A: gmem f16[M])", "k", "entity.name.function");
    expect("kernel k(A: gmem f16[M])", "f16", "storage.type");
    expect("x = max(a, 1.5e3)", "max", "support.function");
    expect("x = max(a, 1.5e3)", "1.5e3", "constant.numeric");
    expect("/* a /* b */ copy */ copy", " copy ", "comment");
    let files = 0;
    for (const name of fs.readdirSync(examples).filter((name) => name.endsWith(".tile"))) {
        files += 1;
        const lines = fs.readFileSync(path.join(examples, name), "utf8").split("\n");
        scopes(lines.join("\n")).forEach((tokens, i) => {
            const comment = lines[i].trimStart().startsWith("//");
            for (const [piece, scope] of tokens) {
                const at = `${name}:${i + 1}: \`${piece}\``;
                if (scope.includes("invalid")) wrong.push(`${at} is ${scope}`);
                if (comment && piece.trim() && !scope.includes("comment")) wrong.push(`${at} is no comment`);
                // Words of the language stand alone, so nothing but names and space is without a scope.
                if (scope === "source.tile" && !/^[\w\s]*$/.test(piece)) wrong.push(`${at} has no scope`);
            }
        });
    }
    if (files < 20) wrong.push(`only ${files} examples`);
    wrong.slice(0, 20).forEach((line) => console.error(line));
    console.log(`${files} examples, ${wrong.length} mistakes`);
    process.exit(wrong.length ? 1 : 0);
}

main();
