// The page: its head, its rooms, and the keys. A room is a module with `id`, `title` and `draw(data, root)`, which gives
// back what to do with a key.

import * as columns from "xray/columns.js";
import * as compare from "xray/compare.js";
import { ROOMS as PICTURES } from "xray/pictures.js";
import { address, choose, chosen, whenChosen } from "xray/select.js";

const data = JSON.parse(document.getElementById("data").textContent);
const ROOMS = [columns, ...PICTURES, ...(data.beside ? [compare] : [])];

const head = document.getElementById("head");
const rooms = document.getElementById("rooms");
head.innerHTML = `<h1></h1><nav aria-label="rooms"></nav><p class="kernels"></p>`;
head.querySelector("h1").textContent = `${data.file} for ${data.target}`;
const values = (k) => Object.entries(k.parameters).map(([name, value]) => `${name}=${value}`).join(" ");
head.querySelector(".kernels").textContent = data.kernels.map((k) => `${k.entry}: ${values(k)}`).join("; ");

const roots = new Map();
for (const room of ROOMS) {
  const root = document.createElement("div");
  root.className = "room";
  root.dataset.room = room.id;
  rooms.append(root);
  roots.set(room, root);
  const link = document.createElement("a");
  link.href = `#${room.id}`;
  link.textContent = room.title;
  head.querySelector("nav").append(link);
}

// What an address names and the page has not: said, with the pictures that there are.
const missing = document.createElement("p");
missing.className = "missing";
missing.setAttribute("role", "status");
head.after(missing);
const saysMissing = (name) => {
  const picture = name.startsWith("picture-") ? name.slice("picture-".length) : "";
  missing.textContent = picture ? `This page has no picture ${picture}. It has: ` : `This page has no ${name}. It has: `;
  const links = picture ? data.pictures.map((p) => [`picture-${p.name}`, p.name]) : ROOMS.map((room) => [room.id, room.title]);
  for (const [to, text] of links) {
    const link = document.createElement("a");
    link.href = address(to, 0);
    link.textContent = text;
    missing.append(link);
  }
};

let open = ROOMS[0].id;
const openChosen = ({ name }) => {
  const asked = ROOMS.find((room) => name === room.id || (room.owns && room.owns(data, name)));
  missing.hidden = !name || Boolean(asked);
  if (!missing.hidden) saysMissing(name);
  open = (asked || ROOMS[0]).id;
  roots.forEach((root) => root.classList.toggle("open", root.dataset.room === open));
  head.querySelectorAll("nav a").forEach((a) => a.setAttribute("aria-current", String(a.hash === `#${open}`)));
};
// A room is open before it hears of the choice, so that it can bring lines into view.
whenChosen(openChosen);

const keys = new Map();
roots.forEach((root, room) => {
  // Drawn while it is open, for the same reason.
  root.classList.add("open");
  keys.set(room.id, room.draw(data, root));
});
openChosen(chosen());

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  if (e.key === "/") {
    // The search is one of the code; from elsewhere its room is opened.
    if (open !== columns.id) choose(columns.id, 0);
    rooms.querySelector(".room.open input[type=search]").focus();
    e.preventDefault();
    return;
  }
  const used = keys.get(open);
  if (used && used(e.key)) e.preventDefault();
});
document.body.dataset.ready = "yes";
