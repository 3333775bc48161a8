// What is chosen, as the address says it: `#ptx:412` is a line, `#budget` a room.

const listeners = [];
let now = parse(location.hash);

// `column:line`, or the name of a room, or nothing.
export function parse(hash) {
  const [name, rest] = decoded(hash.replace(/^#/, "")).split(":");
  const line = Number(rest);
  return Number.isInteger(line) && line > 0 ? { name, line } : { name, line: 0 };
}

// An address that was cut off or mistyped is taken as it is written, and names nothing.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function address(name, line) {
  return line ? `#${encodeURIComponent(name)}:${line}` : `#${encodeURIComponent(name)}`;
}

export function chosen() {
  return now;
}

// Calls `f` with what is chosen, now and whenever that changes.
export function whenChosen(f) {
  listeners.push(f);
  f(now);
}

// Chooses; the address follows. What was chosen before is one step back.
export function choose(name, line) {
  settle(go("pushState", name, line));
}

// The same for what is passed by on the way, as with the arrows: it does not fill the history.
export function move(name, line) {
  settle(go("replaceState", name, line));
}

function go(how, name, line) {
  const next = { name: name || "", line: line || 0 };
  const same = next.name === now.name && next.line === now.line;
  if (!same) history[how](null, "", name ? address(name, line) : location.pathname + location.search);
  return next;
}

function settle(next) {
  if (next.name === now.name && next.line === now.line) return;
  now = next;
  listeners.forEach((f) => f(now));
}

addEventListener("hashchange", () => settle(parse(location.hash)));

// Links are followed here: in the side view of an editor the address of the frame is the editor's, and stays.
addEventListener("click", (e) => {
  const link = e.target.closest?.('a[href^="#"]');
  if (!link || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  const { name, line } = parse(link.getAttribute("href"));
  choose(name, line);
});
