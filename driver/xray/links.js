// What came of what. A line is {column, line}; a column is "source", the name of a pass, "ptx" or "sass"; lines count from 1.

// How near a line is to the chosen one.
export const STRONG = 2; // the same statement, or the same instruction
export const WEAK = 1; // of the same place of the source

export class Links {
  constructor(columns) {
    this.columns = columns;
    this.texts = new Map();
    this.places = new Map();
    let text = [], places = [];
    for (const stage of columns.stages) {
      if (stage.text) {
        text = stage.text;
        places = stage.places;
      }
      this.texts.set(stage.pass, text);
      this.places.set(stage.pass, places);
    }
    const last = columns.stages.at(-1);
    this.last = last ? last.pass : null;
    this.statements = last ? last.statements : [];
    this.buffers = new Map(columns.buffers);
  }

  // The lines of a column.
  text(column) {
    if (column === "source") return this.columns.source;
    if (column === "ptx") return this.columns.ptx;
    if (column === "sass") return this.columns.machine ? this.columns.machine.text : [];
    return this.texts.get(column) || [];
  }

  has(column, line) {
    return line >= 1 && line <= this.text(column).length;
  }

  // What the chosen line stands for: places of the source, statements of the last program, lines of PTX.
  meaning({ column, line }) {
    const at = line - 1;
    const { places, ptx_places, ptx_statements, machine } = this.columns;
    const none = (x) => (x === null || x === undefined ? [] : [x]);
    if (column === "source") {
      const here = places.flatMap(([first, last], i) => (first <= line && line <= last ? [i] : []));
      return { places: new Set(here), statements: new Set(), ptx: new Set() };
    }
    if (column === "ptx" || column === "sass") {
      const from = column === "ptx" ? line : machine.ptx[at];
      const known = from > 0;
      return {
        places: new Set(known ? none(ptx_places[from - 1]) : []),
        statements: new Set(known ? none(ptx_statements[from - 1]) : []),
        ptx: new Set(known ? [from] : []),
      };
    }
    const statements = column === this.last ? none(this.statements[at]) : [];
    return { places: new Set(none(this.places.get(column)[at])), statements: new Set(statements), ptx: new Set() };
  }

  // How near each line of `column` is to the chosen one: a map of lines.
  related(chosen, column) {
    const { places, statements, ptx } = this.meaning(chosen);
    const out = new Map();
    // A declaration of shared memory has no instruction: what works with it is what came of it.
    const users = new Set([...places].flatMap((place) => this.buffers.get(place) || []));
    const ofPtx = (line) => {
      const same = places.has(this.columns.ptx_places[line - 1]) || users.has(this.columns.ptx_statements[line - 1]);
      if (ptx.size) return ptx.has(line) ? STRONG : same ? WEAK : 0;
      if (statements.size) return statements.has(this.columns.ptx_statements[line - 1]) ? STRONG : same ? WEAK : 0;
      return places.has(this.columns.ptx_places[line - 1]) ? STRONG : same ? WEAK : 0;
    };
    const put = (line, how) => how && out.set(line, how);
    if (column === "source") {
      for (const i of places) {
        const [first, last] = this.columns.places[i];
        for (let line = first; line <= last; line++) out.set(line, STRONG);
      }
    } else if (column === "ptx") {
      this.columns.ptx.forEach((_, i) => put(i + 1, ofPtx(i + 1)));
    } else if (column === "sass") {
      if (this.columns.machine) this.columns.machine.ptx.forEach((from, i) => put(i + 1, from > 0 ? ofPtx(from) : 0));
    } else {
      const own = this.places.get(column) || [];
      const exact = column === this.last && statements.size > 0;
      own.forEach((place, i) => {
        const same = place !== null && places.has(place);
        const uses = column === this.last && users.has(this.statements[i]);
        if (exact) put(i + 1, statements.has(this.statements[i]) ? STRONG : same || uses ? WEAK : 0);
        else put(i + 1, same ? STRONG : uses ? WEAK : 0);
      });
    }
    return out;
  }
}
