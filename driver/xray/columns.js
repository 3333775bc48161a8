// The columns that move together: source, a program between passes, PTX, machine code.

import { Links, STRONG } from "xray/links.js";
import { address, choose, chosen, move, whenChosen } from "xray/select.js";
import { addSearch } from "xray/search.js";
import { work } from "xray/work.js";

export const id = "columns";
export const title = "Code";
export const owns = (data, name) => ["source", "ptx", "sass"].includes(name) || data.columns.stages.some((s) => s.pass === name);

const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// Four kinds of column: what it is called and what stands in front of its lines.
export function draw(data, root) {
  const columns = data.columns;
  const links = new Links(columns);
  const passes = columns.stages.map((s) => s.pass);
  let pass = passes.at(-1) || "";
  root.innerHTML = `<div class="tools"></div><div class="columns">
    ${section("source", "Source", "")}
    ${section("tile", "Program after", passSelect(columns.stages))}
    ${section("ptx", "PTX", "")}
    ${section("sass", "Machine code", "")}
  </div><p class="status" role="status"></p>`;
  const box = (kind) => root.querySelector(`.column[data-kind="${kind}"] .lines`);
  const kindOf = (column) => (links.texts.has(column) ? "tile" : column);
  const columnOf = (kind) => (kind === "tile" ? pass : kind);

  box("source").innerHTML = columns.source.map((text, i) => row("source", i + 1, text)).join("");
  box("ptx").innerHTML = columns.ptx.map((text, i) => row("ptx", i + 1, text.replace(/\t/g, "  "))).join("");
  drawMachine(root, columns.machine);
  box("source").insertAdjacentHTML("beforeend", remarks(columns.remarks, "Remarks on the whole"));

  const drawPass = () => {
    const stage = columns.stages.find((s) => s.pass === pass);
    if (!stage) return;
    root.querySelector("select").value = pass;
    root.querySelector('.column[data-kind="tile"] .about').textContent = stage.about;
    box("tile").innerHTML = passLines(stage, links.text(pass)) + remarks(stage.remarks, `What ${pass} says`);
    mark();
    light();
  };
  // Of each column the lit lines, and which of them is in view: it is gone through by buttons and keys.
  const lit = new Map();
  let stepped = "ptx";
  const view = (kind, at) => {
    const rows = lit.get(kind)?.rows || [];
    const steps = root.querySelector(`.column[data-kind="${kind}"] .steps`);
    steps.hidden = rows.length < 2;
    box(kind).querySelectorAll(".l.here").forEach((l) => l.classList.remove("here"));
    if (!rows.length) return;
    lit.set(kind, { rows, at });
    steps.querySelector("output").textContent = `${at + 1} of ${rows.length} lit`;
    if (rows.length > 1) rows[at].classList.add("here");
    bring(rows[at]);
  };
  const stepLit = (kind, by) => {
    const { rows, at } = lit.get(kind) || { rows: [] };
    if (!rows.length) return;
    stepped = kind;
    view(kind, (at + rows.length + by) % rows.length);
  };
  const light = () => {
    const { name, line } = chosen();
    root.querySelectorAll(".l.on, .l.strong, .l.weak").forEach((l) => l.classList.remove("on", "strong", "weak"));
    lit.clear();
    const status = root.querySelector(".status");
    status.textContent = "";
    if (!line || !links.has(name, line)) {
      KINDS.forEach((kind) => view(kind, 0));
      const lines = links.text(name).length;
      if (line && lines) status.textContent = `${name}:${line} — there are ${lines} lines`;
      return;
    }
    const counts = [];
    for (const kind of KINDS) {
      const related = links.related({ column: name, line }, columnOf(kind));
      const rows = [...box(kind).querySelectorAll(".l[data-line]")].filter((row) => related.get(Number(row.dataset.line)));
      const how = (row) => related.get(Number(row.dataset.line));
      for (const row of rows) row.classList.add(how(row) === STRONG ? "strong" : "weak");
      // The lines of the same statement that do its work, a product rather than the addresses of its operands, come into view.
      const rank = (row) => (how(row) === STRONG ? 100 : 0) + work(columnOf(kind), row.querySelector("code").textContent);
      let first = rows.reduce((best, row) => (!best || rank(row) > rank(best) ? row : best), null);
      // A line of one pass is none of another.
      const own = columnOf(kind) === name ? box(kind).querySelector(`.l[data-line="${line}"]`) : null;
      if (own) {
        own.classList.add("on");
        first = own;
      }
      lit.set(kind, { rows, at: 0 });
      view(kind, Math.max(0, rows.indexOf(first)));
      if (own) bring(own);
      counts.push(`${rows.length} of ${kind === "tile" ? pass : kind}`);
    }
    status.textContent = `${name}:${line} — lines lit: ${counts.join(", ")}`;
  };
  const show = (to) => {
    pass = to;
    drawPass();
  };

  const mark = addSearch(root, columnOf);
  drawPass();
  whenChosen(({ name }) => {
    if (links.texts.has(name) && name !== pass) show(name);
    else light();
  });
  root.querySelector("select").addEventListener("change", (e) => show(e.target.value));
  root.addEventListener("click", (e) => {
    const by = e.target.closest("[data-lit]");
    if (by) return stepLit(by.closest(".column").dataset.kind, Number(by.dataset.lit));
    const row = e.target.closest(".l[data-line]");
    if (!row || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    choose(columnOf(row.closest(".column").dataset.kind), Number(row.dataset.line));
  });
  const step = (by) => {
    const at = passes.indexOf(pass) + by;
    if (at >= 0 && at < passes.length) show(passes[at]);
  };
  root.querySelector("[data-step='-1']").addEventListener("click", () => step(-1));
  root.querySelector("[data-step='1']").addEventListener("click", () => step(1));
  // Lines of the column that has the focus, or of that which was last gone through.
  const focused = () => document.activeElement?.closest?.(".column")?.dataset.kind || stepped;
  return (key) => {
    if (key !== "n" && key !== "p") return keyboard(key, { links, step, kindOf, columnOf, box });
    stepLit(focused(), key === "n" ? 1 : -1);
    return true;
  };
}

function section(kind, title, more) {
  return `<section class="column" data-kind="${kind}" aria-label="${title}">
    <h2>${title} ${more} <span class="steps" hidden><button type="button" data-lit="-1" title="the lit line before: p">‹</button>
    <output></output> <button type="button" data-lit="1" title="the next lit line: n">›</button></span></h2><p class="about"></p><div class="lines" tabindex="0"></div></section>`;
}

function passSelect(stages) {
  const options = stages.map((s) => {
    const n = s.changed.length + s.removed.length;
    return `<option value="${s.pass}">${s.pass}${n ? ` (±${n})` : ""}</option>`;
  });
  return `<button data-step="-1" title="the pass before: [">‹</button>
    <select aria-label="pass">${options.join("")}</select>
    <button data-step="1" title="the next pass: ]">›</button>`;
}

// A line: its number is a link to it. Keys reach lines by the arrows, so that no number is a stop of the tabulator.
function row(column, line, text, before = "", classes = "") {
  return `<div class="l ${classes}" data-line="${line}"><a class="n" href="${address(column, line)}" tabindex="-1">${line}</a>${before}<code>${
    escape(text) || " "
  }</code></div>`;
}

function passLines(stage, text) {
  const changed = new Set(stage.changed);
  const gone = new Map();
  for (const [at, was] of stage.removed) gone.set(at, [...(gone.get(at) || []), was]);
  const removed = (at) =>
    (gone.get(at) || []).map((was) => `<div class="l removed"><span class="n"></span><i>−</i><code>${escape(was) || " "}</code></div>`).join("");
  const lines = text.map((line, i) => {
    const is = changed.has(i + 1);
    return removed(i + 1) + row(stage.pass, i + 1, line, `<i>${is ? "+" : " "}</i>`, is ? "changed" : "");
  });
  return lines.join("") + removed(text.length + 1);
}

function remarks(list, title) {
  if (!list.length) return "";
  const items = list.map((r) => {
    const places = (r.places || []).map(([line, text]) => `<br><a href="${address("source", line)}">line ${line}</a>: ${escape(text)}`).join("");
    const notes = places + r.notes.map((n) => `<br><small>${escape(n)}</small>`).join("");
    const line = r.line ? `<a href="${address("source", r.line)}">line ${r.line}</a>: ` : "";
    return `<li class="${r.severity}">${line}${escape(r.message)} <small>[${escape(r.code)}]</small>${notes}</li>`;
  });
  return `<div class="remarks"><h3>${title}</h3><ul>${items.join("")}</ul></div>`;
}

// Machine code with its scheduling: what it waits for, what it sets, how long it stalls; registers in use.
function drawMachine(root, machine) {
  const column = root.querySelector('.column[data-kind="sass"]');
  const about = column.querySelector(".about");
  if (!machine) {
    about.textContent = "not shown: no ptxas and nvdisasm were found for this target where the page was made";
    return;
  }
  const most = Math.max(1, ...machine.live.map((n) => n || 0));
  about.textContent =
    `ptxas ${machine.assembler}: ` +
    machine.entries.map((e) => `${e.entry} ${e.registers} registers, ${e.spilled} bytes spilled${e.reloaded ? ` (${e.reloaded} loaded)` : ""}`).join("; ");
  const head = `<div class="l head"><span class="n"></span><span class="ctl">wait   rd wr y st reuse</span><span class="live">live</span></div>`;
  const spills = new Map(machine.spills.map((s) => [s.line, s]));
  const lines = machine.text.map((text, i) => {
    const c = machine.control[i];
    const spill = spills.get(i + 1);
    const live = machine.live[i];
    const bar = live === null ? "" : `<b style="width:${Math.round((30 * live) / most)}px"></b>${live}`;
    const ctl = c ? `<span class="ctl" title="${words(c)}">${fields(c)}</span>` : '<span class="ctl"></span>';
    const mark = `<i title="${spill ? spillWords(spill) : ""}">${spill ? "!" : " "}</i>`;
    const before = `${ctl}<span class="live" title="registers in use">${bar}</span>${mark}`;
    return row("sass", i + 1, text, before, spill ? "spill" : "");
  });
  column.querySelector(".lines").innerHTML = head + lines.join("") + spilledLines(machine) + remarks(machine.remarks, "What the assembler says");
}

const spillWords = (s) => `spilled: ${s.bytes} bytes of registers are ${s.store ? "stored to" : "loaded from"} local memory`;

// What is stored and loaded, as far as there is any of it.
const spilledBytes = (s) => {
  if (!s.loaded) return `${s.stored} bytes stored`;
  return s.stored ? `${s.stored} bytes stored, ${s.loaded} loaded` : `${s.loaded} bytes loaded`;
};

// For which lines of the source registers are spilled, and the first instruction of all that do it.
function spilledLines(machine) {
  const items = machine.spilled.flatMap(([entry, lines]) =>
    lines.map((s) => {
      const where = s.line ? `<a href="${address("source", s.line)}">line ${s.line}</a>` : "no line";
      return `<li>${where} of ${escape(entry)}: ${spilledBytes(s)}</li>`;
    }),
  );
  if (!items.length) return "";
  const first = machine.spills[0].line;
  return `<div class="remarks"><h3>Spills (<a href="${address("sass", first)}">the first</a>)</h3><ul>${items.join("")}</ul></div>`;
}

const bits = (mask, n) => Array.from({ length: n }, (_, i) => (mask & (1 << i) ? String(i) : "-")).join("");
const number = (n) => (n === undefined ? "-" : String(n));

// The fields in columns of fixed width.
function fields(c) {
  return `${bits(c.wait, 6)} ${number(c.read)}  ${number(c.write)}  ${c.yields ? "y" : "-"} ${String(c.stall).padStart(2)} ${bits(c.reuse, 4)}`;
}

function words(c) {
  const list = (mask) => [0, 1, 2, 3, 4, 5].filter((i) => mask & (1 << i)).join(", ");
  const said = [`${c.stall} cycles until the warp may issue again`];
  if (c.wait) said.push(`waits for barrier ${list(c.wait)}`);
  if (c.write !== undefined) said.push(`sets barrier ${c.write} until its result is written`);
  if (c.read !== undefined) said.push(`sets barrier ${c.read} until its operands are read`);
  if (c.yields) said.push("asks the scheduler to go on with another warp");
  if (c.reuse) said.push(`keeps operand ${list(c.reuse)} for the next instruction`);
  return said.join("; ");
}

// Scrolls a line into its own column, and moves nothing else.
function bring(line) {
  const box = line.closest(".lines");
  const [high, height] = [line.offsetHeight, box.clientHeight];
  const top = line.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
  // Names of fields stay at the top, and cover what is under them: whole lines.
  const covered = box.querySelector(".head")?.offsetHeight ?? 0;
  if (top >= box.scrollTop + covered && top + high <= box.scrollTop + height) return;
  const end = Math.floor((box.scrollHeight - height) / high) * high;
  const to = Math.max(0, Math.min(Math.round((top - height / 3) / high) * high, end));
  box.scrollTop = top + high > to + height ? to + high : to;
}

const KINDS = ["source", "tile", "ptx", "sass"];

// Arrows, `[`, `]` and Escape. Whether the key was used.
function keyboard(key, { links, step, kindOf, columnOf, box }) {
  const { name, line } = chosen();
  const at = line && links.has(name, line) ? { name, line } : null;
  const lit = (kind) => box(kind).querySelector(".l.strong") || box(kind).querySelector(".l.weak");
  if (key === "[" || key === "]") step(key === "[" ? -1 : 1);
  else if (key === "Escape") move("", 0);
  else if (key === "ArrowDown" || key === "j" || key === "ArrowUp" || key === "k") {
    const kind = at ? kindOf(at.name) : "source";
    const column = columnOf(kind);
    const by = key === "ArrowDown" || key === "j" ? 1 : -1;
    // From a line of a pass that is no longer shown to what is lit in the one that is.
    const next = !at ? 1 : column === at.name ? at.line + by : Number(lit(kind)?.dataset.line || 1);
    if (links.has(column, next)) move(column, next);
  } else if (key === "ArrowRight" || key === "l" || key === "ArrowLeft" || key === "h") {
    if (!at) return false;
    const to = KINDS[KINDS.indexOf(kindOf(at.name)) + (key === "ArrowRight" || key === "l" ? 1 : -1)];
    const line = to && (Number(lit(to)?.dataset.line || 0) || nearest(links, at, columnOf(to)));
    if (line) move(columnOf(to), line);
  } else return false;
  return true;
}

// Of a line from which nothing came in a column: what came from the nearest line that left something there, or 0.
function nearest(links, at, column) {
  const [own, there] = [links.text(at.name).length, links.text(column).length];
  for (let far = 1; there && far < own; far++) {
    for (const line of [at.line + far, at.line - far]) {
      if (!links.has(at.name, line)) continue;
      const related = [...links.related({ column: at.name, line }, column)];
      const strong = related.find(([, how]) => how === STRONG);
      if (strong) return strong[0];
    }
  }
  return 0;
}
