// Starts `tilec lsp` for tile programs, and shows what `tilec explain` says of codes.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SCHEME = "tilec-explain";
let client;

function settings() {
    const all = vscode.workspace.getConfiguration("tilec");
    return { target: all.get("target"), defines: all.get("defines"), sizes: all.get("sizes") };
}

async function start() {
    const command = vscode.workspace.getConfiguration("tilec").get("path");
    const server = { command, args: ["lsp"] };
    const options = {
        documentSelector: [{ language: "tile" }],
        initializationOptions: settings(),
    };
    client = new LanguageClient("tilec", "tilec", server, options);
    try {
        await client.start();
    } catch (error) {
        vscode.window.showErrorMessage(`\`${command} lsp\` does not start: ${error.message}. The setting tilec.path names the command.`);
    }
}

async function explain(word) {
    try {
        return await client.sendRequest("tilec/explain", { word });
    } catch (error) {
        return error.message;
    }
}

async function show(word) {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(`${SCHEME}:${word}`));
    await vscode.window.showTextDocument(document, { preview: true, viewColumn: vscode.ViewColumn.Beside });
}

async function activate(context) {
    const provider = { provideTextDocumentContent: (uri) => explain(uri.path) };
    context.subscriptions.push(
        vscode.workspace.registerTextDocumentContentProvider(SCHEME, provider),
        vscode.commands.registerCommand("tilec.restart", async () => {
            await client?.stop();
            await start();
        }),
        vscode.commands.registerCommand("tilec.explain", async () => {
            const word = await vscode.window.showInputBox({ prompt: "A code, a pass, a function or a word: E0201, swizzle, mma" });
            if (word) await show(word);
        }),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (event.affectsConfiguration("tilec")) {
                client?.sendNotification("workspace/didChangeConfiguration", { settings: { tilec: settings() } });
            }
        }),
    );
    await start();
}

function deactivate() {
    return client?.stop();
}

module.exports = { activate, deactivate };
