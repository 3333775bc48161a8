//! Where views lie: tensors in memory, windows of them, and the plan of an access.

use crate::diag::Span;
use crate::entities::Value;
use crate::interp::Numbers;
use crate::interp::bounds::Bound;
use crate::interp::element_addresses::DimSteps;
use crate::kernel::Slot;
use crate::types::Elem;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A global tensor during a run.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) value: Value,
    pub(super) elem: Elem,
    pub(super) shape: Vec<i64>,
    pub(super) strides: Vec<DimSteps>,
    pub(super) padded: Vec<Lines>,
    pub(super) data: Numbers,
    /// How far the device may be from the elements; `None`: nothing.
    pub(super) bound: Option<Bound>,
}

/// Padded lines of a tensor.
#[derive(Debug)]
pub(super) struct Lines {
    /// Elements from line to line.
    pub(super) stride: i64,
    /// Lines in memory.
    pub(super) extent: i64,
    /// Lines of padding in front of them.
    pub(super) behind: i64,
    /// How many lines a step along each dimension is.
    pub(super) steps: Vec<DimSteps>,
}

/// What a window looks at.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Root {
    /// A global tensor, by its number.
    Global(usize),
    /// A register tile or shared-memory buffer.
    Place(Value),
    /// A slot of a channel.
    Slot(Value, Slot),
}

/// A dimension of a window, in coordinates of the root.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) start: i64,
    pub(super) end: Option<i64>,
    pub(super) extent: i64,
    pub(super) stride: i64,
    /// The number of the root's dimension, if it has several modes; there is no one stride then.
    pub(super) modes: Option<usize>,
    /// The indices of the elements along it, in place of those from `start` on.
    pub(super) rows: Option<Rc<Vec<i64>>>,
    /// The index along it of each element of the window, in place of those.
    pub(super) cells: Option<Rc<Cells>>,
}

impl Axis {
    /// Whether all elements along it are the same.
    fn repeats(&self) -> bool {
        self.stride == 0 && self.modes.is_none()
    }
}

/// Indices of elements one by one.
#[derive(Debug)]
pub(super) struct Cells {
    /// The extents of the tile of indices: those of the window, or 1.
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Vec<i64>,
}

impl Cells {
    /// The index of the element at these coordinates of the window.
    pub(super) fn at(&self, coordinates: &[usize]) -> i64 {
        let place = |place: usize, (&n, &c): (&usize, &usize)| place * n + if n == 1 { 0 } else { c };
        self.numbers.get(self.shape.iter().zip(coordinates).fold(0, place)).copied().unwrap_or(-1)
    }
}

/// Calls `f` with the coordinates of each element of a tile, in row-major order.
pub(super) fn for_each_element(shape: &[usize], mut f: impl FnMut(&[usize])) {
    if shape.contains(&0) {
        return;
    }
    let mut at = vec![0; shape.len()];
    loop {
        f(&at);
        let Some(d) = (0..shape.len()).rev().find(|&d| at[d] + 1 < shape[d]) else { return };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
}

/// Two elements of a tile that are stored to one.
pub(super) struct Twice {
    pub(super) elements: [String; 2],
    pub(super) index: String,
}

/// A box of a tensor or tile.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) root: Root,
    /// Address of the dimensions that were indexed away.
    pub(super) base: i128,
    /// Lines that these are on, of each that is padded.
    pub(super) lines: Vec<i128>,
    pub(super) axes: Vec<Axis>,
    /// An index computed from an integer may be outside of the root: then no element exists.
    pub(super) absent: bool,
    /// Where it is written.
    pub(super) span: Span,
}

impl Window {
    /// The window of a tile of extents `shape` in parts without repeated elements, in the order of elements.
    pub(super) fn rounds(&self, shape: &[usize]) -> Vec<Round> {
        let places = (0..shape.iter().product()).collect();
        let whole = Round { window: self.clone(), shape: shape.to_vec(), places };
        if let Some(d) = self.axes.iter().position(|axis| axis.cells.is_some()) {
            return whole.by_cells(d);
        }
        let parted = (0..self.axes.len()).filter(|&d| self.axes[d].rows.is_some() || self.axes[d].repeats());
        parted.fold(vec![whole], |parts, d| parts.iter().flat_map(|part| part.along(d)).collect())
    }

    /// The coordinates in the root of the window's element at `at`; `None`: it does not exist.
    fn coordinates(&self, at: &[usize]) -> Option<Vec<i64>> {
        let along = |(axis, &c): (&Axis, &usize)| {
            let own = match (&axis.cells, &axis.rows) {
                (Some(cells), _) => cells.at(at),
                (None, Some(rows)) => *rows.get(c)?,
                (None, None) => axis.start.checked_add(c as i64)?,
            };
            let limit = axis.end.map_or(axis.extent, |end| end.min(axis.extent));
            // Along a dimension that repeats all are one.
            let place = if axis.repeats() { 0 } else { own };
            (0..limit).contains(&own).then_some(place)
        };
        self.axes.iter().zip(at).map(along).collect()
    }

    /// An index to which several elements of a tile of extents `shape` are stored, and two of these elements.
    pub(super) fn twice(&self, shape: &[usize]) -> Option<Twice> {
        if self.axes.iter().any(|axis| axis.cells.is_some()) {
            return self.twice_of_cells(shape);
        }
        let exists = |axis: &Axis, row: i64| (0..axis.extent).contains(&row);
        // What names nothing along one dimension is stored nowhere, however often it is named along another.
        let some = |axis: &Axis| axis.rows.as_ref().is_none_or(|rows| rows.iter().any(|&row| exists(axis, row)));
        if !self.axes.iter().all(some) {
            return None;
        }
        self.axes.iter().find_map(|axis| {
            let mut seen = BTreeMap::new();
            axis.rows.iter().flat_map(|rows| rows.iter().enumerate()).find_map(|(i, &row)| {
                let other = seen.insert(row, i).filter(|_| exists(axis, row))?;
                Some(Twice { elements: [other.to_string(), i.to_string()], index: row.to_string() })
            })
        })
    }

    /// The same where elements have their own indices.
    fn twice_of_cells(&self, shape: &[usize]) -> Option<Twice> {
        let mut seen: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
        let mut found = None;
        for_each_element(shape, |at| {
            let Some(own) = self.coordinates(at).filter(|_| found.is_none()) else { return };
            let index = format!("({})", own.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
            let text = |at: &[usize]| format!("({})", at.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
            found = seen.insert(own, at.to_vec()).map(|other| Twice { elements: [text(&other), text(at)], index });
        });
        found
    }
}

/// Elements of a tile with different places in memory.
pub(super) struct Round {
    pub(super) window: Window,
    /// The extents of the window.
    pub(super) shape: Vec<usize>,
    /// Which elements of the tile the window has, in row-major order.
    pub(super) places: Vec<usize>,
}

impl Round {
    /// The rounds of a window whose elements have their own indices along dimension `d`. The first has the window's
    /// extents; later ones have only the elements that are left.
    fn by_cells(self, d: usize) -> Vec<Round> {
        let mut times: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        let mut numbers = Vec::new();
        let mut later: Vec<Vec<(usize, Vec<i64>)>> = Vec::new();
        for_each_element(&self.shape, |at| {
            let place = numbers.len();
            numbers.push(NOWHERE);
            let Some(own) = self.window.coordinates(at) else { return };
            let before = times.entry(own.clone()).or_insert(0);
            let round = std::mem::replace(before, *before + 1);
            match round.checked_sub(1) {
                None => numbers[place] = own[d],
                Some(round) => {
                    later.resize_with(later.len().max(round + 1), Vec::new);
                    later[round].push((place, own));
                }
            }
        });
        let rank = self.shape.len();
        let left = later.into_iter().map(|elements| {
            let mut window = self.window.clone();
            let mut shape = vec![1; rank];
            shape[d] = elements.len();
            for (axis, along) in window.axes.iter_mut().zip(0..) {
                let numbers = elements.iter().map(|(_, own)| own[along]).collect();
                (axis.rows, axis.cells) = (None, Some(Rc::new(Cells { shape: shape.clone(), numbers })));
            }
            Round { window, shape, places: elements.into_iter().map(|(place, _)| place).collect() }
        });
        let left: Vec<Round> = left.collect();
        let cells = Cells { shape: self.shape.clone(), numbers };
        let mut first = self;
        first.window.axes[d].cells = Some(Rc::new(cells));
        std::iter::once(first).chain(left).collect()
    }

    /// The rounds of a window whose elements are gathered, or the same, along dimension `d`.
    fn along(&self, d: usize) -> Vec<Round> {
        let axis = &self.window.axes[d];
        let Some(rows) = axis.rows.clone() else { return self.one_by_one(d) };
        // What does not exist is stored nowhere, however often.
        let exists = |row: &i64| (0..axis.extent).contains(row);
        let mut times = BTreeMap::new();
        let mut first = vec![NOWHERE; rows.len()];
        let mut later: Vec<Vec<usize>> = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            // Along a dimension that repeats all are one.
            let place = if axis.repeats() && exists(row) { 0 } else { *row };
            let before = times.entry(place).or_insert(0usize);
            match std::mem::replace(before, *before + 1).checked_sub(1) {
                None => first[i] = *row,
                Some(_) if !exists(row) => {}
                Some(round) => {
                    later.resize_with(later.len().max(round + 1), Vec::new);
                    later[round].push(i);
                }
            }
        }
        let left =
            later.iter().map(|own| self.part(d, own.iter().map(|&i| rows[i]).collect(), &|i| own.get(i).copied()));
        let left: Vec<Round> = left.collect();
        std::iter::once(self.part(d, first, &|_| None)).chain(left).collect()
    }

    /// The rounds of a window whose elements along dimension `d` are the same.
    fn one_by_one(&self, d: usize) -> Vec<Round> {
        let axis = &self.window.axes[d];
        let row = |i: usize| axis.start.saturating_add(i as i64);
        let exists = |&i: &usize| axis.end.is_none_or(|end| row(i) < end);
        (0..self.shape[d]).filter(exists).map(|own| self.part(d, vec![row(own)], &|_| Some(own))).collect()
    }

    /// Elements with these indices along dimension `d`; `kept`: their places there.
    fn part(&self, d: usize, at: Vec<i64>, kept: &dyn Fn(usize) -> Option<usize>) -> Round {
        let mut round = Round { window: self.window.clone(), shape: self.shape.clone(), places: Vec::new() };
        round.shape[d] = at.len();
        round.window.axes[d].rows = Some(Rc::new(at));
        for_each_element(&round.shape, |at| {
            let own = at.iter().enumerate().map(|(axis, &i)| if axis == d { kept(i).unwrap_or(i) } else { i });
            let place = own.zip(&self.shape).fold(0, |place, (i, &n)| place * n + i);
            round.places.push(self.places[place]);
        });
        round
    }
}

/// An index that names no element.
const NOWHERE: i64 = -1;

/// Where the existing elements of a tile are.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) shape: Vec<usize>,
    /// How many elements along each dimension are in front of those that exist.
    pub(super) skipped: Vec<usize>,
    /// How many elements exist along each dimension.
    pub(super) valid: Vec<usize>,
    pub(super) strides: Vec<usize>,
    /// The addresses along dimensions of several modes, and of gathered elements, in place of strides; `None`: there is no such element.
    pub(super) tables: Vec<Option<Vec<Option<usize>>>>,
    /// What the indices of elements one by one add to their addresses, by their places in the tile; `None`: there is no such element.
    pub(super) cells: Option<Vec<Option<usize>>>,
    pub(super) base: usize,
    /// Of padded tensors.
    pub(super) padded: Vec<PlannedLines>,
    /// No element exists.
    pub(super) absent: bool,
}

/// On which padded line elements of a tile are.
#[derive(Debug)]
pub(super) struct PlannedLines {
    /// That of the first element of the tensor's window, and how many there are.
    pub(super) base: i128,
    pub(super) extent: i64,
    /// What indices along each dimension of the plan add; empty: nothing.
    pub(super) tables: Vec<Vec<i128>>,
}

impl PlannedLines {
    /// Whether the element with this index is in memory.
    fn holds(&self, index: &[usize]) -> bool {
        let own = |(table, &i): (&Vec<i128>, &usize)| table.get(i).copied().unwrap_or(0);
        let line = self.base + self.tables.iter().zip(index).map(own).sum::<i128>();
        (0..i128::from(self.extent)).contains(&line)
    }
}

impl Plan {
    /// Calls `f(place in the tile, address)` for each row of existing elements: `self.run()` elements, the addresses
    /// `self.step()` apart.
    pub(super) fn rows(&self, mut f: impl FnMut(usize, usize)) {
        if self.absent || self.valid.contains(&0) {
            return;
        }
        let outer = self.shape.len().saturating_sub(1);
        let mut index = vec![0; outer];
        loop {
            let (mut at, mut address) = (0, Some(self.base));
            for (d, &i) in index.iter().enumerate() {
                at = at * self.shape[d] + self.skipped[d] + i;
                let own = self.tables[d].as_ref().map_or_else(|| Some(i * self.strides[d]), |table| table[i]);
                // In front of a padded tensor addresses wrap around, and there is no element.
                address = address.zip(own).map(|(sum, own)| sum.wrapping_add(own));
            }
            let row = at * self.shape.last().copied().unwrap_or(1);
            // Rows are of one element then.
            if let Some(cells) = &self.cells {
                address = address.zip(cells[row]).map(|(sum, own)| sum.wrapping_add(own));
            }
            if let Some(address) = address.filter(|_| self.padded.iter().all(|lines| lines.holds(&index))) {
                f(row + self.skipped.last().copied().unwrap_or(0), address);
            }
            let Some(d) = (0..outer).rev().find(|&d| index[d] + 1 < self.valid[d]) else { return };
            index[d] += 1;
            index[d + 1..].fill(0);
        }
    }

    /// Elements in a row.
    pub(super) fn run(&self) -> usize {
        self.valid.last().copied().unwrap_or(1)
    }

    /// Distance of neighbouring elements of a row.
    pub(super) fn step(&self) -> usize {
        self.strides.last().copied().unwrap_or(1)
    }

    /// Puts the existing elements over `out`.
    pub(super) fn gather<T: Copy>(&self, from: &[T], out: &mut [T]) {
        let (run, step) = (self.run(), self.step());
        self.rows(|at, address| {
            let row = &mut out[at..at + run];
            if step == 1 {
                row.copy_from_slice(&from[address..address + run]);
            } else {
                row.iter_mut().enumerate().for_each(|(i, x)| *x = from[address + i * step]);
            }
        });
    }

    /// The same of elements of type `elem`.
    pub(super) fn gather_numbers(&self, from: &Numbers, elem: Elem, out: &mut Numbers) {
        *out = std::mem::take(out).to_representation(elem);
        match (from, out) {
            (Numbers::Floats(from), Numbers::Floats(out)) => self.gather(from, out),
            (Numbers::Wide(from), Numbers::Wide(out)) => self.gather(from, out),
            (Numbers::Floats(_), Numbers::Wide(_)) | (Numbers::Wide(_), Numbers::Floats(_)) => unlike(elem),
        }
    }

    /// Stores the elements of a tile at the places of the plan; both have the same type.
    pub(super) fn scatter_numbers(&self, from: &Numbers, to: &mut Numbers, elem: Elem) {
        match (from, to) {
            (Numbers::Floats(from), Numbers::Floats(to)) => self.scatter(|address, i| to[address] = from[i]),
            (Numbers::Wide(from), Numbers::Wide(to)) => self.scatter(|address, i| to[address] = from[i]),
            (Numbers::Floats(_), Numbers::Wide(_)) | (Numbers::Wide(_), Numbers::Floats(_)) => unlike(elem),
        }
    }

    /// Hands the existing elements to `put(address, place in the tile)`.
    pub(super) fn scatter(&self, mut put: impl FnMut(usize, usize)) {
        let (run, step) = (self.run(), self.step());
        self.rows(|at, address| (0..run).for_each(|i| put(address + i * step, at + i)));
    }

    /// Whether the plan is the whole of a memory of `len` elements, in order.
    pub(super) fn is_whole(&self, len: usize) -> bool {
        let mut dense = 1;
        let in_order = self.shape.iter().zip(&self.strides).rev().all(|(&n, &s)| {
            let ok = s == dense || n == 1;
            dense *= n;
            ok
        });
        self.base == 0
            && !self.absent
            && self.tables.iter().all(Option::is_none)
            && self.cells.is_none()
            && self.padded.is_empty()
            && self.valid == self.shape
            && in_order
            && dense == len
    }
}

/// Elements are rounded to their own type, and converted before they are stored.
pub(super) fn unlike(elem: Elem) -> ! {
    panic!("bug in the interpreter: elements of {} are not kept as such", elem.name())
}

/// Row-major strides.
pub(super) fn dense_strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        // The memory limit bounds the number of elements of a tile.
        strides[d - 1] = strides[d] * shape[d] as i64;
    }
    strides
}
