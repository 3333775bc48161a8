// Pictures of layouts.

import { address, whenChosen } from "xray/select.js";

export const id = "pictures";
export const title = "Pictures";

const own = (name) => `picture-${name}`;

export function owns(data, name) {
  return data.pictures.some((p) => own(p.name) === name);
}

export function draw(data, root) {
  const figures = data.pictures.map((p) => {
    const line = p.line ? ` <a href="${address("source", p.line)}">line ${p.line}</a>` : "";
    return `<figure data-name="${own(p.name)}"><figcaption><a href="${address(own(p.name), 0)}">${p.name}</a>${line}</figcaption>${p.svg}</figure>`;
  });
  root.innerHTML = `<div class="pictures">${
    figures.join("") || "<p>There are no register tiles with layouts in this program.</p>"
  }</div>`;
  whenChosen(({ name }) => {
    const figure = [...root.querySelectorAll("figure")].find((f) => f.dataset.name === name);
    // The room may be opened by the same choice.
    if (figure) requestAnimationFrame(() => figure.scrollIntoView({ block: "start" }));
  });
}
