// A search over all columns: what is found is marked, and gone through with Enter. Gives back what marks again, for lines that are drawn anew.

import { choose } from "xray/select.js";

export function addSearch(root, columnOf) {
  const tools = root.querySelector(".tools");
  tools.innerHTML = `<label>Search <input type="search" placeholder="in all columns: /"></label> <output></output>
    <span class="keys">↑ ↓ lines · ← → columns · [ ] passes · n p lit lines · / search · Esc nothing chosen</span>`;
  const input = tools.querySelector("input");
  const output = tools.querySelector("output");
  let found = [];
  let at = -1;
  const look = () => {
    root.querySelectorAll(".l.hit").forEach((l) => l.classList.remove("hit"));
    const wanted = input.value.toLowerCase();
    const has = (l) => l.querySelector("code").textContent.toLowerCase().includes(wanted);
    found = wanted ? [...root.querySelectorAll(".l[data-line]")].filter(has) : [];
    found.forEach((l) => l.classList.add("hit"));
    at = -1;
    output.textContent = wanted ? `${found.length} lines` : "";
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      input.value = "";
      look();
      input.blur();
    }
    if (e.key !== "Enter") return;
    if (!found.length) return;
    at = (at + (e.shiftKey ? found.length - 1 : 1) + (at < 0 && e.shiftKey ? 1 : 0)) % found.length;
    const line = found[at];
    output.textContent = `${at + 1} of ${found.length} lines`;
    choose(columnOf(line.closest(".column").dataset.kind), Number(line.dataset.line));
  });
  return look;
}
