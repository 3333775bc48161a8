// What a person does in VS Code with a program. See scripts/vscode_test.sh.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(`${process.env.TILEC_VSCODE}/`);
const puppeteer = require("puppeteer-core");
const [address, folder] = process.argv.slice(2);
const shots = process.env.TILEC_VSCODE_SHOTS;

const browser = await puppeteer.launch({
  executablePath: process.env.TILEC_BROWSER,
  args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
await page.setViewport({ width: 1600, height: 1000 });
page.setDefaultTimeout(60000);

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const text = (name) => readFileSync(join(folder, name), "utf8");
async function shot(name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
}
// Waits until something holds, and says what it was.
async function wait(what, holds) {
  for (let i = 0; i < 300; i++) {
    const found = await holds();
    if (found) return found;
    await pause(100);
  }
  await shot("failed");
  throw new Error(`waited in vain for ${what}`);
}
// The texts of what is shown, with plain spaces.
const texts = (selector) =>
  page.$$eval(selector, (found) => found.filter((f) => f.offsetParent !== null || f.getClientRects().length).map((f) => f.textContent.replaceAll("\u00a0", " ")));
const shows = async (selector, what) => (await texts(selector)).some((t) => t.includes(what));
async function press(...keys) {
  for (const key of keys.slice(0, -1)) await page.keyboard.down(key);
  await page.keyboard.press(keys.at(-1));
  for (const key of keys.slice(0, -1).reverse()) await page.keyboard.up(key);
}
async function command(name) {
  await press("F1");
  await wait("the commands", () => shows(".quick-input-widget", "recently used").then((seen) => seen || page.$(".quick-input-list .monaco-list-row")));
  await page.keyboard.type(name);
  await wait(`the command ${name}`, async () => (await texts(".quick-input-list .monaco-list-row")).at(0)?.includes(name));
  await press("Enter");
}
async function open(name, line, column = 1) {
  await press("Control", "p");
  await wait("the files", () => page.$(".quick-input-widget input"));
  await page.keyboard.type(name);
  await wait(name, async () => (await texts(".quick-input-list .monaco-list-row")).at(0)?.includes(name));
  await press("Enter");
  await wait(`${name} to be open`, () => shows(".tab.active", name));
  await go(line, column);
}
async function go(line, column) {
  await press("Control", "g");
  await wait("where to go", () => page.$(".quick-input-widget input"));
  await pause(200);
  await page.keyboard.type(`${line}:${column}`);
  await press("Enter");
  await wait("the place", () => shows(".editor-statusbar-item, #status\\.editor\\.selection", `Ln ${line}, Col ${column}`));
}
// The line and the column of a word of a file, and the column behind it.
function find(name, word, nth = 1) {
  let at = -1;
  for (let i = 0; i < nth; i++) at = text(name).indexOf(word, at + 1);
  assert.ok(at >= 0, word);
  const before = text(name).slice(0, at).split("\n");
  return [before.length, before.at(-1).length + 1];
}
// What was asked for may come after the first keys.
async function save(name, holds) {
  await wait(`${name} to be saved`, async () => {
    await press("Control", "s");
    return holds(text(name));
  });
}

const tests = [];
const test = (name, body) => tests.push({ name, body });

test("the extension starts with the first program", async () => {
  await page.goto(`${address}/?folder=${folder}`);
  await wait("the window", () => page.$(".monaco-workbench .explorer-folders-view"));
  await open("gemm.tile", ...find("gemm.tile", "acc = mma"));
  await wait("the language", () => shows("#status\\.editor\\.mode", "Tile"));
  await wait("colours", () => page.$$eval(".view-line span[class^=mtk]", (s) => new Set(s.map((w) => w.className)).size > 3));
});

test("values that were chosen stand in the text", async () => {
  await go(...find("gemm.tile", "KW = auto"));
  await wait("a hint", async () => (await texts(".view-line")).some((l) => /BM = auto \d+/.test(l)));
  await shot("hints");
});

test("hover", async () => {
  await go(...find("gemm.tile", "acc = mma"));
  await press("Control", "k");
  await press("Control", "i");
  await wait("what is known of `acc`", () => shows(".monaco-hover", "acc"));
  await wait("what was chosen", () => shows(".monaco-hover", "m64k16"));
  await shot("hover");
  await press("Escape");
});

test("a mistake is shown as it is typed, and mended by its fix", async () => {
  const before = text("gemm.tile");
  const [line, column] = find("gemm.tile", "acc = mma");
  await go(line, column + "acc = mma".length);
  await page.keyboard.type("q");
  await wait("the wave under it", () => page.$(".squiggly-error"));
  await wait("the count of errors", async () => (await texts("#status\\.problems")).some((t) => /\b1\b/.test(t)));
  await press("F8");
  await wait("the message", () => shows(".marker-widget", "mmaq"));
  await shot("mistake");
  await press("Escape");
  await pause(300);
  await press("Control", ".");
  await wait("the fix", () => shows(".action-widget", "mma"));
  await shot("fix");
  await press("Enter");
  await save("gemm.tile", (now) => now === before);
  await wait("the mistake to be gone", async () => !(await page.$(".squiggly-error")));
});

test("completion", async () => {
  const before = text("gemm.tile");
  const [line, column] = find("gemm.tile", "acc = mma(a, b, acc)");
  await go(line, column + "acc = mma(a, b, acc)".length);
  await press("Enter");
  await page.keyboard.type("acc = acc + ro");
  await press("Control", "Space");
  await wait("proposals", async () => (await texts(".suggest-widget .monaco-list-row")).some((t) => t.includes("round")));
  await shot("completion");
  await press("Escape");
  await command("File: Revert File");
  await wait("the text from before", async () => !(await page.$(".tab.active.dirty")) && text("gemm.tile") === before);
});

test("definition and rename", async () => {
  const [declared] = find("gemm.tile", "var acc");
  await go(...find("gemm.tile", "acc = mma"));
  await press("F12");
  await wait("the cursor at the definition", () => shows("#status\\.editor\\.selection", `Ln ${declared},`));
  await press("F2");
  await wait("the box", () => page.$(".rename-box input, .rename-input"));
  await pause(200);
  await press("Control", "a");
  await page.keyboard.type("sums");
  await press("Enter");
  await save("gemm.tile", (now) => now.includes("sums = mma(a, b, sums)") && !now.includes("acc)"));
});

test("formatting", async () => {
  const before = text("gemm.tile");
  await go(...find("gemm.tile", "sums = mma"));
  await page.keyboard.type("   ");
  await command("Format Document");
  await pause(500);
  await save("gemm.tile", (now) => now === before);
});

test("a code is explained", async () => {
  await command("tilec: Explain a code or a word");
  await pause(500);
  await page.keyboard.type("E0201");
  await press("Enter");
  await wait("the explanation", async () => (await texts(".editor-instance .view-lines")).some((t) => t.includes("E0201")));
  await shot("explained");
});

test("the page stands beside the program", async () => {
  // It has no size `K`, which the settings have.
  await open("softmax.tile", 1);
  await command("tilec: Show the pictures and the code of this program");
  const frame = await wait("the page", async () => {
    for (const f of page.frames()) {
      if (await f.$("body[data-ready]").catch(() => null)) return f;
    }
    return null;
  });
  await shot("page");
  await frame.click('nav a[href="#memory"]');
  await wait("another room", () => frame.$('.room.open[data-room="memory"]'));
  await shot("page-memory");
  assert.ok(await frame.$$eval("figure[data-name] svg", (all) => all.length > 3));
});

try {
  for (const { name, body } of tests) {
    await body();
    console.log(`  ${name}`);
  }
  console.log(`VS Code: fine, ${tests.length} tests`);
} catch (error) {
  await shot("failed");
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
}
