// Starts `tilec lsp` for tile programs, and shows what `tilec explain` says of codes.
const { execFile } = require("child_process");
const path = require("path");
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

// What `tilec xray` says of the settings, for `execFile`.
function xrayArguments(file, { target, defines, sizes }) {
    const list = (values) => Object.entries(values || {}).map(([name, value]) => `${name}=${value}`);
    const args = ["xray", file, "--target", target || "sm_70"];
    if (list(defines).length) args.push("-D", list(defines).join(","));
    if (list(sizes).length) args.push("--for", list(sizes).join(","));
    return args;
}

// The page of the file that is open, beside it: pictures of layouts, memory and time, and the columns of code.
async function page(context) {
    const editor = vscode.window.activeTextEditor;
    if (!editor || editor.document.languageId !== "tile") {
        vscode.window.showErrorMessage("The page is that of a tile program: open one.");
        return;
    }
    await editor.document.save();
    const file = editor.document.uri.fsPath;
    const command = vscode.workspace.getConfiguration("tilec").get("path");
    // Settings are for all programs: those that fit this one.
    const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
    const fitting = await client.sendRequest("tilec/settings", { textDocument: { uri } });
    const most = 64 * 1024 * 1024;
    execFile(command, xrayArguments(file, fitting), { maxBuffer: most }, (error, html, said) => {
        if (error) {
            vscode.window.showErrorMessage(said || error.message);
            return;
        }
        const title = `${path.basename(file)}: pictures`;
        const options = { enableScripts: true, retainContextWhenHidden: true };
        const panel = vscode.window.createWebviewPanel("tilec.page", title, vscode.ViewColumn.Beside, options);
        panel.webview.html = html;
        context.subscriptions.push(panel);
    });
}

async function activate(context) {
    const provider = { provideTextDocumentContent: (uri) => explain(uri.path) };
    context.subscriptions.push(
        vscode.workspace.registerTextDocumentContentProvider(SCHEME, provider),
        vscode.commands.registerCommand("tilec.restart", async () => {
            await client?.stop();
            await start();
        }),
        vscode.commands.registerCommand("tilec.page", () => page(context)),
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

module.exports = { activate, deactivate, xrayArguments };
