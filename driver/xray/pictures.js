// Rooms of pictures: register tiles, memory, time, budget. A picture may have steps, which are gone through one by one.

import { address, whenChosen } from "xray/select.js";

const own = (name) => `picture-${name}`;

// A room with the pictures that hang in it.
function room(id, title, none) {
  const of = (data) => data.pictures.filter((p) => p.room === id);
  const owns = (data, name) => of(data).some((p) => own(p.name) === name);
  return { id, title, owns, draw: (data, root) => draw(of(data), root, none) };
}

export const ROOMS = [
  room("pictures", "Registers", "There are no register tiles with layouts in this program."),
  room("memory", "Memory", "No access of this program is drawn."),
  room("time", "Time", "No loop of this program is scheduled."),
  room("budget", "Budget", "There is nothing to say of its budget."),
];

// Everything in a picture is text that the compiler has escaped.
function draw(pictures, root, none) {
  const figures = pictures.map((p) => {
    const line = p.line ? ` <a href="${address("source", p.line)}">line ${p.line}</a>` : "";
    const steps = p.frames
      ? `<span class="steps"><button type="button" data-by="-1">◂ back</button> <output>1 of ${p.frames.length}</output> <button type="button" data-by="1">on ▸</button></span>`
      : "";
    return `<figure data-name="${own(p.name)}"><figcaption><a href="${address(own(p.name), 0)}">${p.name}</a>${line} ${steps}</figcaption><div class="drawn">${p.frames ? p.frames[0] : p.svg}</div></figure>`;
  });
  root.innerHTML = `<div class="pictures">${figures.join("") || `<p>${none}</p>`}</div>`;
  const all = [...root.querySelectorAll("figure")];
  const at = pictures.map(() => 0);
  const step = (i, by) => {
    const { frames } = pictures[i];
    at[i] = (at[i] + frames.length + by) % frames.length;
    all[i].querySelector(".drawn").innerHTML = frames[at[i]];
    all[i].querySelector("output").textContent = `${at[i] + 1} of ${frames.length}`;
  };
  all.forEach((figure, i) => {
    figure.querySelectorAll("button").forEach((b) => b.addEventListener("click", () => step(i, Number(b.dataset.by))));
  });
  whenChosen(({ name }) => {
    const figure = all.find((f) => f.dataset.name === name);
    // The room may be opened by the same choice.
    if (figure) requestAnimationFrame(() => figure.scrollIntoView({ block: "start" }));
  });
  // The keys of steps: those of the picture that is most in view.
  return (key) => {
    const by = { ArrowRight: 1, l: 1, ArrowLeft: -1, h: -1 }[key];
    if (!by) return false;
    const seen = all.findIndex((f, i) => pictures[i].frames && f.getBoundingClientRect().bottom > 80);
    if (seen < 0) return false;
    step(seen, by);
    return true;
  };
}
