// Opens every page of a folder, and does in it what a reader does. See scripts/browser_test.sh.

import { createRequire } from "node:module";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";

const require = createRequire(`${process.env.TILEC_BROWSER_CACHE}/`);
const puppeteer = require("puppeteer-core");

const folder = resolve(process.argv[2]);
const browser = await puppeteer.launch({
  executablePath: process.env.TILEC_BROWSER,
  args: ["--no-sandbox", "--disable-gpu"],
});

// Opens a page at an address; whatever it says on the console, or asks the network for, is an error.
async function open(file, hash) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1600, height: 900 });
  const said = [];
  page.on("console", (m) => said.push(m.text()));
  page.on("pageerror", (e) => said.push(e.message));
  page.on("request", (r) => {
    const own = r.url().startsWith("data:") || r.url().startsWith("file:");
    if (!own) said.push(`asked for ${r.url()}`);
  });
  await page.goto(`file://${folder}/${file}${hash}`);
  await page.waitForSelector("body[data-ready]", { timeout: 60000 });
  const { TaskDuration } = await page.metrics();
  return { page, said, seconds: TaskDuration };
}

const count = (page, selector) => page.$$eval(selector, (found) => found.length);
const lit = (page, kind) => count(page, `.column[data-kind="${kind}"] .l.strong`);
const at = (page) => page.evaluate(() => location.hash);

// Names of fields above lines that are scrolled: what shows through them, and lines that they cover in part.
const covered = (page) =>
  page.$$eval(".lines .head", (heads) =>
    heads.flatMap((head) => {
      const { left, right, top, bottom } = head.getBoundingClientRect();
      const box = head.closest(".lines");
      const wrong = [];
      for (let x = left + 8; x < Math.min(right, box.getBoundingClientRect().right) - 20; x += 16) {
        const on = document.elementFromPoint(x, (top + bottom) / 2);
        if (!head.contains(on)) wrong.push(`over the names of fields: ${on?.textContent.slice(0, 40)}`);
      }
      const rows = [...box.querySelectorAll(".l:not(.head)")].map((l) => [l, l.getBoundingClientRect()]);
      // At the very end the last line decides.
      const end = box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
      const cut = rows.filter(([, r]) => !end && r.top < bottom - 1 && r.bottom > bottom + 1);
      return [...wrong, ...cut.map(([l]) => `a line in part under the names of fields: ${l.textContent.slice(0, 40)}`)];
    }),
  );

// Every kind of link opens with its line chosen and in view, and lights what belongs to it.
async function links(file) {
  const { page, said } = await open(file, "");
  const has = await page.evaluate(() => {
    const c = JSON.parse(document.getElementById("data").textContent).columns;
    const ptx = c.ptx_statements.findLastIndex((s) => s !== null) + 1;
    const sass = c.machine ? c.machine.ptx.indexOf(ptx) + 1 || c.machine.ptx.findIndex((l) => l > 0) + 1 : 0;
    const [source] = c.places[c.ptx_places[ptx - 1]];
    const place = (l) => c.ptx_places[l - 1];
    const made = new Set((c.machine ? c.machine.ptx : []).filter((l) => l > 0).map(place));
    const bare = c.machine ? c.ptx.findIndex((_, i) => c.ptx_places[i] === null || !made.has(c.ptx_places[i])) + 1 : 0;
    // Near the end of the last program, which is longer than the first.
    const end = c.stages.findLast((s) => s.text).places.findLastIndex((p) => p !== null) + 1;
    // A declaration of shared memory, which has no instruction of its own.
    const buffer = c.source.findIndex((l) => /^\s*let \w+ = smem/.test(l)) + 1;
    return { bare, buffer, end, source, ptx, sass, last: c.stages.at(-1).pass, first: c.stages[0].pass, passes: c.stages.length };
  });
  assert.deepEqual(said, []);
  await page.close();
  let most = 0;
  const wanted = [["source", has.source], ["ptx", has.ptx], [has.last, 1], [has.first, 1]];
  if (has.sass) wanted.push(["sass", has.sass]);
  if (has.buffer) wanted.push(["source", has.buffer]);
  for (const [name, line] of wanted) {
    const { page, said, seconds } = await open(file, `#${name}:${line}`);
    assert.equal(await count(page, ".l.on"), 1, `${file}#${name}:${line}: no line is chosen`);
    for (const kind of ["source", "tile", "ptx"]) {
      // What works with a buffer is lit weakly.
      const weak = kind === "ptx" && name === "source" && line === has.buffer ? await count(page, `.column[data-kind="ptx"] .l.weak`) : 0;
      assert.ok(weak || (await lit(page, kind)), `${file}#${name}:${line}: no ${kind} is lit`);
    }
    const seen = await page.$eval(".l.on", (l) => {
      const [line, box] = [l.getBoundingClientRect(), l.closest(".lines").getBoundingClientRect()];
      return line.top >= box.top - 1 && line.bottom <= box.bottom + 1;
    });
    assert.ok(seen, `${file}#${name}:${line}: the line is not in view`);
    assert.deepEqual(await covered(page), [], `${file}#${name}:${line}`);
    most = Math.max(most, seconds);
    assert.deepEqual(said, [], `${file}#${name}:${line}`);
    await page.close();
  }
  return { ...has, most };
}

// What was spilled is marked, listed by lines of the source, and linked; so are the contract and what the assembler says.
async function spills(file) {
  const { page, said } = await open(file, "");
  const data = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).columns);
  const machine = data.machine;
  const sass = '.column[data-kind="sass"]';
  assert.equal(await count(page, `${sass} .l.spill`), machine ? machine.spills.length : 0, `${file}: marks of spills`);
  if (machine && machine.spills.length) {
    const text = await page.$eval(`${sass} .lines`, (lines) => lines.textContent);
    for (const [entry, lines] of machine.spilled) {
      for (const s of lines) {
        const bytes = [s.stored && `${s.stored} bytes stored`, s.loaded && `${s.loaded}${s.stored ? "" : " bytes"} loaded`];
        assert.ok(text.includes(`line ${s.line} of ${entry}: ${bytes.filter(Boolean).join(", ")}`), text.slice(-900));
      }
    }
    assert.ok(text.includes("What the assembler says") && text.includes("Registers are spilled"), `${file}: what the assembler says`);
    const whole = await page.$eval('.column[data-kind="source"] .remarks', (r) => r.textContent);
    assert.ok(whole.includes("does not meet `require no spills`"), `${file}: the broken contract`);
    const first = machine.spills[0].line;
    await page.$eval(`${sass} .remarks a[href="#sass:${first}"]`, (a) => a.click());
    assert.equal(await at(page), `#sass:${first}`);
    assert.ok(await lit(page, "source"), `${file}: the line that is blamed is lit`);
  }
  assert.deepEqual(said, [], file);
  await page.close();
  return machine ? machine.spills.length : 0;
}

// A click, the keys, the passes and the search.
async function reader(file, has) {
  const { page, said } = await open(file, "");
  await page.click(`.column[data-kind="source"] .l[data-line="${has.source}"] code`);
  assert.equal(await at(page), `#source:${has.source}`);
  await page.keyboard.press("ArrowRight");
  assert.match(await at(page), new RegExp(`^#${has.last}:`));
  await page.keyboard.press("ArrowRight");
  assert.match(await at(page), /^#ptx:/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Escape");
  assert.equal(await at(page), "");
  assert.equal(await count(page, ".l.on, .l.strong, .l.weak"), 0);
  for (let i = 1; i < has.passes; i++) await page.keyboard.press("[");
  assert.equal(await page.$eval("select", (s) => s.value), has.first);
  let changed = 0;
  for (let i = 1; i < has.passes; i++) {
    await page.keyboard.press("]");
    changed += await count(page, ".l.changed");
  }
  assert.ok(changed > 0, `${file}: no pass changes anything`);
  await page.keyboard.press("/");
  await page.keyboard.type("ld.param");
  assert.ok((await count(page, ".l.hit")) > 0, `${file}: the search finds nothing`);
  await page.keyboard.press("Enter");
  assert.match(await at(page), /^#ptx:/);
  // Every link of the page leads to a line that there is, or to a room.
  const dead = await page.evaluate(() => {
    const data = JSON.parse(document.getElementById("data").textContent).columns;
    const lines = { source: data.source.length, ptx: data.ptx.length, sass: data.machine ? data.machine.text.length : 0 };
    let text = 0;
    for (const s of data.stages) lines[s.pass] = text = s.text ? s.text.length : text;
    const rooms = new Set([...document.querySelectorAll(".room")].map((r) => r.dataset.room));
    for (const figure of document.querySelectorAll("figure[data-name]")) rooms.add(figure.dataset.name);
    return [...document.querySelectorAll("a[href]")]
      .map((a) => a.getAttribute("href"))
      .filter((href) => {
        const [name, line] = href.replace("#", "").split(":");
        return line ? !(Number(line) <= lines[name]) : !rooms.has(name);
      });
  });
  assert.deepEqual(dead, []);
  await page.emulateMediaType("print");
  assert.equal(await page.$eval(".tools", (t) => getComputedStyle(t).display), "none");
  await page.emulateMediaType("screen");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  assert.notEqual(await page.$eval("body", (b) => getComputedStyle(b).backgroundColor), "rgb(255, 255, 255)");
  assert.deepEqual(said, [], file);
  await page.close();
}

// A product of the source brings its instructions into view, and the lit lines are gone through by buttons and keys.
async function steps(file) {
  const { page, said } = await open(file, "");
  const product = await page.evaluate(() => {
    const { source } = JSON.parse(document.getElementById("data").textContent).columns;
    return source.findIndex((l) => /= mma\(/.test(l)) + 1;
  });
  if (!product) return page.close();
  await page.click(`.column[data-kind="source"] .l[data-line="${product}"] code`);
  const here = (kind) => page.$eval(`.column[data-kind="${kind}"] .l.here code`, (code) => code.textContent);
  const inView = (kind) =>
    page.$eval(`.column[data-kind="${kind}"] .l.here`, (l) => {
      const [line, box] = [l.getBoundingClientRect(), l.closest(".lines").getBoundingClientRect()];
      return line.top >= box.top - 1 && line.bottom <= box.bottom + 1;
    });
  assert.match(await here("ptx"), /wgmma\.mma_async|mma\.sync/, `${file}: the product in view`);
  assert.ok(await inView("ptx"), `${file}: the product is in view`);
  if (await count(page, '.column[data-kind="sass"] .l.strong')) assert.match(await here("sass"), /MMA/, `${file}: its instruction in view`);
  const output = (kind) => page.$eval(`.column[data-kind="${kind}"] .steps output`, (o) => Number(o.textContent.split(" ")[0]));
  const [all, first] = [await count(page, '.column[data-kind="ptx"] .l.strong, .column[data-kind="ptx"] .l.weak'), await output("ptx")];
  await page.click('.column[data-kind="ptx"] .steps [data-lit="1"]');
  assert.equal(await output("ptx"), (first % all) + 1);
  assert.ok(await inView("ptx"), `${file}: the next lit line is in view`);
  await page.keyboard.press("p");
  assert.equal(await output("ptx"), first);
  await page.keyboard.press("p");
  await page.keyboard.press("n");
  assert.equal(await output("ptx"), first);
  assert.equal(await at(page), `#source:${product}`, `${file}: the choice stays`);
  await page.keyboard.press("Escape");
  assert.equal(await count(page, ".l.here, .column .steps:not([hidden])"), 0);
  assert.deepEqual(said, [], file);
  await page.close();
}

// What chosen lines, passes, the search, the history and paper do to each other.
async function ways(file, has) {
  const { page, said } = await open(file, `#${has.last}:${has.end}`);
  // A line of a pass stays chosen while others are looked at: none of their lines is it, and the marks of the search follow.
  await page.evaluate(() => {
    const input = document.querySelector(".room.open input[type=search]");
    input.value = "for ";
    input.dispatchEvent(new Event("input"));
  });
  for (let i = 1; i < has.passes; i++) {
    await page.keyboard.press("[");
    assert.equal(await count(page, ".l.on"), 0, `${file}: a line of another pass is boxed`);
    assert.ok(await lit(page, "source"), `${file}: nothing is lit ${i} passes before`);
    const found = await page.$eval(".tools output", (o) => Number(o.textContent.split(" ")[0]));
    assert.equal(await count(page, ".l.hit"), found, `${file}: marks of the search ${i} passes before`);
  }
  if (await lit(page, "tile")) {
    await page.keyboard.press("ArrowUp");
    assert.match(await at(page), new RegExp(`^#${has.first}:`));
  }
  // Numbers of lines are no stops of the tabulator.
  assert.equal(await count(page, ".l a.n:not([tabindex='-1'])"), 0);
  // A choice is gone back from; what the arrows pass by is not in between.
  const other = has.source === 1 ? 2 : 1;
  await page.click(`.column[data-kind="source"] .l[data-line="${other}"] a.n`);
  await page.click(`.column[data-kind="source"] .l[data-line="${has.source}"] code`);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  assert.equal(await at(page), `#source:${has.source}`);
  await page.evaluate(() => history.back());
  await page.waitForFunction((line) => location.hash === `#source:${line}`, {}, other);
  // `/` opens the code from wherever it is.
  await page.click('nav a[href="#memory"]');
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  assert.equal(await page.$eval(".room.open", (r) => r.dataset.room), "columns");
  // Paper has the open room, and its title.
  await page.click('nav a[href="#memory"]');
  await page.emulateMediaType("print");
  const shown = (selector) =>
    page.$$eval(selector, (all) => all.filter((e) => getComputedStyle(e).display !== "none").map((e) => e.dataset.room || e.textContent));
  assert.deepEqual(await shown(".room"), ["memory"], `${file}: rooms on paper`);
  assert.deepEqual(await shown("nav, nav a").then((all) => all.slice(1)), ["Memory"], `${file}: titles on paper`);
  assert.deepEqual(said, [], file);
  await page.close();
  // From a line of PTX without machine code to the nearest that has some.
  if (has.bare) {
    const { page, said } = await open(file, `#ptx:${has.bare}`);
    await page.keyboard.press("ArrowRight");
    assert.match(await at(page), /^#sass:/, `${file}: from line ${has.bare} of the PTX`);
    assert.deepEqual(said, [], file);
    await page.close();
  }
  // A picture that the page has not is said, with those that it has.
  const none = await open(file, "#picture-nothere");
  const missing = () => none.page.$eval(".missing", (p) => (p.hidden ? "" : p.textContent));
  assert.match(await missing(), /^This page has no picture nothere\. It has: /, `${file}#picture-nothere`);
  const to = await none.page.$eval(".missing a", (a) => a.getAttribute("href"));
  await none.page.click(".missing a");
  assert.equal(await at(none.page), to);
  assert.equal(await missing(), "", `${file}${to}`);
  assert.deepEqual(none.said, [], `${file}#picture-nothere`);
  await none.page.close();
  // An address that is cut off names nothing, and the page is there.
  const cut = await open(file, "#%");
  assert.ok(await count(cut.page, ".room.open .l"), `${file}#%: no line`);
  assert.deepEqual(cut.said, [], `${file}#%`);
  await cut.page.close();
}

// Pictures are the same on a dark screen as on paper, their texts stay inside, and their steps are gone through by buttons and keys.
async function drawn(file) {
  const { page, said } = await open(file, "");
  const all = await page.$$eval("figure[data-name]", (figures) =>
    figures.map((f) => ({ name: f.dataset.name, room: f.closest(".room").dataset.room, steps: f.querySelectorAll(".steps").length })),
  );
  const rooms = new Set(all.map((f) => f.room));
  const shots = new Map();
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const room of rooms) {
      await page.click(`nav a[href="#${room}"]`);
      await page.waitForFunction((room) => document.querySelector(".room.open").dataset.room === room, {}, room);
      // The first of each room, and one with steps.
      const here = all.filter((f) => f.room === room);
      for (const { name } of new Set([here[0], here.find((f) => f.steps)].filter(Boolean))) {
        const svg = await page.$(`figure[data-name="${name}"] svg`);
        const shot = (await svg.screenshot({ encoding: "base64" })).toString();
        assert.ok(shot.length > 1000, `${file}: ${name} is empty`);
        if (shots.has(name)) assert.equal(shot, shots.get(name), `${file}: ${name} is another picture on a dark screen`);
        shots.set(name, shot);
      }
    }
  }
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  for (const room of rooms) {
    await page.click(`nav a[href="#${room}"]`);
    const outside = await page.$$eval(".room.open figure svg", (svgs) =>
      svgs.flatMap((svg) => {
        const { y, width, height } = svg.viewBox.baseVal;
        const out = (t) => {
          const b = t.getBBox();
          return b.x < -1 || b.y < y - 1 || b.x + b.width > width + 1 || b.y + b.height > y + height + 1;
        };
        return [...svg.querySelectorAll("text")].filter(out).map((t) => `${svg.closest("figure").dataset.name}: ${t.textContent}`);
      }),
    );
    assert.deepEqual(outside, [], `${file}: texts that leave their picture`);
  }
  for (const { name, room } of all.filter((f) => f.steps).slice(0, 2)) {
    await page.click(`nav a[href="#${room}"]`);
    const output = () => page.$eval(`figure[data-name="${name}"] output`, (o) => o.textContent);
    const first = await page.$eval(`figure[data-name="${name}"] svg`, (s) => s.outerHTML);
    assert.match(await output(), /^1 of /);
    await page.click(`figure[data-name="${name}"] button[data-by="1"]`);
    assert.match(await output(), /^2 of /);
    assert.notEqual(await page.$eval(`figure[data-name="${name}"] svg`, (s) => s.outerHTML), first, `${file}: ${name} has one step`);
    await page.click(`figure[data-name="${name}"] button[data-by="-1"]`);
    assert.equal(await page.$eval(`figure[data-name="${name}"] svg`, (s) => s.outerHTML), first);
  }
  assert.deepEqual(said, [], file);
  await page.close();
}

// The link of a picture opens its room, and brings it into view.
async function pictures(file) {
  const { page } = await open(file, "");
  const names = await page.$$eval("figure[data-name]", (all) => all.map((f) => f.dataset.name));
  await page.close();
  for (const name of names.slice(-1)) {
    const { page, said } = await open(file, `#${name}`);
    const room = await page.$eval(`figure[data-name="${name}"]`, (f) => f.closest(".room").dataset.room);
    assert.equal(await page.$eval(".room.open", (r) => r.dataset.room), room);
    await page.waitForFunction((name) => {
      const box = document.querySelector(`figure[data-name="${name}"]`).getBoundingClientRect();
      return box.top < innerHeight && box.bottom > 0;
    }, {}, name);
    assert.deepEqual(said, [], file);
    await page.close();
  }
}

// From a picture, a link to a line opens the code with that line, and what was made of it, in view.
async function fromPicture(file) {
  const { page, said } = await open(file, "#memory");
  const links = await page.$$eval('figure figcaption a[href^="#source:"]', (all) => all.filter((a) => a.offsetParent).map((a) => a.getAttribute("href")));
  if (links.length) {
    const to = links.at(-1);
    await page.evaluate((to) => [...document.querySelectorAll(`a[href="${to}"]`)].find((a) => a.offsetParent).click(), to);
    assert.equal(await page.$eval(".room.open", (r) => r.dataset.room), "columns", `${file}${to}`);
    const scrolled = (page) => page.$$eval(".columns .lines", (all) => all.map((box) => box.scrollTop));
    const direct = await open(file, to);
    assert.deepEqual(await scrolled(page), await scrolled(direct.page), `${file}: ${to} from a picture is not where it is by its own address`);
    await direct.page.close();
  }
  assert.deepEqual(said, [], file);
  await page.close();
}

// Stored pictures: what a person saw and found right. Texts are left out of the images, because fonts differ from machine to machine; what they say, and
// where, is in a hash beside.
const REFERENCE = join(dirname(fileURLToPath(import.meta.url)), "reference");
const BLESS = process.env.TILEC_BLESS === "1";
// Drawn only where there is an assembler. What it makes of the program is the same with the release that scripts/fetch_tools.sh has.
const BY_ASSEMBLER = new Set(["registers"]);

// The share of pixels that differ to the eye, in a page that has both images.
const difference = (page, [a, b]) =>
  page.evaluate(
    async (urls) => {
      const pixels = async (url) => {
        const bitmap = await createImageBitmap(await (await fetch(url)).blob());
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        const context = canvas.getContext("2d");
        context.drawImage(bitmap, 0, 0);
        return context.getImageData(0, 0, bitmap.width, bitmap.height);
      };
      const [a, b] = await Promise.all(urls.map(pixels));
      if (a.width !== b.width || a.height !== b.height) return 1;
      let wrong = 0;
      for (let i = 0; i < a.data.length; i += 4) {
        const far = [0, 1, 2].some((c) => Math.abs(a.data[i + c] - b.data[i + c]) > 24);
        wrong += far ? 1 : 0;
      }
      return (4 * wrong) / a.data.length;
    },
    [a, b].map((image) => `data:image/png;base64,${image}`),
  );

// Every picture of a page, and its second step, against the stored one; of a page whose values are all given.
async function compared(file) {
  const own = join(REFERENCE, file.replace("compared/", "").replace(".html", ""));
  const hashes = join(own, "texts.json");
  if (BLESS) {
    rmSync(own, { recursive: true, force: true });
    mkdirSync(own, { recursive: true });
  }
  const known = BLESS ? {} : JSON.parse(readFileSync(hashes, "utf8"));
  const { page, said } = await open(file, "");
  await page.addStyleTag({ content: ".pictures svg { max-width: none !important } .pictures svg text { visibility: hidden }" });
  const all = await page.$$eval("figure[data-name]", (figures) =>
    figures.map((f) => ({ name: f.dataset.name, room: f.closest(".room").dataset.room, steps: f.querySelectorAll(".steps").length })),
  );
  const wrong = [];
  const seen = new Set();
  for (const { name, room, steps } of all) {
    const short = name.replace("picture-", "");
    await page.click(`nav a[href="#${room}"]`);
    await page.waitForFunction((room) => document.querySelector(".room.open").dataset.room === room, {}, room);
    for (const step of steps ? [1, 2] : [1]) {
      if (step > 1) await page.click(`figure[data-name="${name}"] button[data-by="1"]`);
      const key = steps ? `${short}-step-${step}` : short;
      seen.add(key);
      const svg = await page.$(`figure[data-name="${name}"] svg`);
      const texts = await svg.$$eval("text", (all) => all.map((t) => [t.getAttribute("x"), t.getAttribute("y"), t.textContent].join(" ")));
      const hash = createHash("sha256").update(texts.join("\n")).digest("hex").slice(0, 16);
      const shot = await svg.screenshot({ encoding: "base64" });
      const image = join(own, `${key}.png`);
      if (BLESS) {
        known[key] = hash;
        writeFileSync(image, Buffer.from(shot, "base64"));
        continue;
      }
      if (known[key] !== hash) wrong.push(`${key}: what is written in it`);
      if (!existsSync(image)) {
        wrong.push(`${key}: it is not stored`);
        continue;
      }
      const share = await difference(page, [readFileSync(image).toString("base64"), shot]);
      if (share > 0.002) wrong.push(`${key}: ${(100 * share).toFixed(1)} % of its pixels`);
    }
  }
  if (BLESS) writeFileSync(hashes, `${JSON.stringify(known, Object.keys(known).sort(), 1)}\n`);
  for (const key of Object.keys(known)) if (!seen.has(key) && !BY_ASSEMBLER.has(key)) wrong.push(`${key}: it is not drawn`);
  assert.deepEqual(wrong, [], `${file}: pictures that are not the stored ones; scripts/browser_test.sh --bless stores them, if they are right`);
  assert.deepEqual(said, [], file);
  await page.close();
  console.log(`${file}: ${seen.size} pictures ${BLESS ? "stored" : "are the stored ones"}`);
}

// Every room can be opened by its link.
async function rooms(file) {
  const { page, said } = await open(file, "");
  const names = await page.$$eval("nav a", (links) => links.map((a) => a.getAttribute("href")));
  for (const name of names) {
    await page.click(`nav a[href="${name}"]`);
    await page.waitForFunction((name) => document.querySelector(".room.open").dataset.room === name, {}, name.slice(1));
    const text = await page.$eval(".room.open", (r) => r.textContent.trim().length);
    assert.ok(text > 0, `${file}: the room ${name} is empty`);
  }
  // Editors that show the page take clicks on links for themselves, and have little room.
  await page.evaluate(() => addEventListener("click", (e) => e.preventDefault(), true));
  await page.setViewport({ width: 500, height: 900 });
  for (const name of names) {
    await page.click(`nav a[href="${name}"]`);
    assert.equal(await page.$eval(".room.open", (r) => r.dataset.room), name.slice(1), `${file}: the room ${name} is not opened in an editor`);
  }
  await page.click(`nav a[href="${names[0]}"]`);
  if (names.includes("#compare")) {
    await page.click('nav a[href="#compare"]');
    const widths = await page.$$eval(".compare .code tr td:first-child:not([colspan])", (cells) => cells.map((c) => c.clientWidth));
    assert.ok(widths.length && Math.max(...widths) < 80, `${file}: line numbers take ${Math.max(...widths)} pixels`);
    await page.click(`nav a[href="${names[0]}"]`);
  }
  const narrowest = await page.$$eval(".column", (all) => Math.min(...all.map((c) => c.clientWidth)));
  assert.ok(narrowest > 300, `${file}: a column is ${narrowest} wide beside an editor`);
  assert.deepEqual(said, [], file);
  await page.close();
}

try {
  for (const file of readdirSync(join(folder, "compared")).sort()) await compared(`compared/${file}`);
  const files = readdirSync(folder).filter((f) => f.endsWith(".html")).sort();
  assert.ok(files.length > 0);
  for (const file of files) {
    const has = await links(file);
    const spilled = await spills(file);
    assert.ok(!file.startsWith("spilled") || !has.sass || spilled > 0, `${file}: nothing is spilled`);
    await reader(file, has);
    await ways(file, has);
    await steps(file);
    await rooms(file);
    await pictures(file);
    await fromPicture(file);
    await drawn(file);
    console.log(`${file}: fine, opened with ${has.most.toFixed(2)} s of work`);
  }
} finally {
  await browser.close();
}
