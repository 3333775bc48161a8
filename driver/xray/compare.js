// Two variants side by side: figures, then each column with the lines that differ.

export const id = "compare";
export const title = "Two variants";

export function draw(data, root) {
  const { beside } = data;
  root.innerHTML = `<div class="pictures compare"></div>`;
  const list = root.firstChild;
  const add = (parent, tag, text) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    parent.append(e);
    return e;
  };
  const head = (table, cells) => {
    const row = add(table, "tr");
    cells.forEach((text) => add(row, "th", text));
  };
  const figures = add(list, "table");
  head(figures, ["", "this one", beside.values]);
  for (const [name, own, other] of beside.figures) {
    const row = add(figures, "tr");
    if (own !== other) row.className = "differs";
    [own === other ? name : `≠ ${name}`, own, other].forEach((text) => add(row, "td", text));
  }
  for (const { title, rows } of beside.columns) {
    const changed = rows.filter((r) => !r.same).length;
    add(list, "h2", `${title}: ${changed} lines differ`);
    const table = add(list, "table");
    table.className = "code";
    // Widths of the whole table: its first row may be one cell.
    const widths = add(table, "colgroup");
    for (const kind of ["number", "text", "number", "text"]) add(widths, "col").className = kind;
    for (const { left, right, same } of rows) {
      const row = add(table, "tr");
      if (!left && !right) {
        add(row, "td", "⋯").colSpan = 4;
        continue;
      }
      if (!same) row.className = "differs";
      for (const [line, sign] of [[left, "−"], [right, "+"]]) {
        add(row, "td", line ? (same ? `${line[0]}` : `${sign} ${line[0]}`) : "");
        add(row, "td", line ? line[1] : "");
      }
    }
  }
}
