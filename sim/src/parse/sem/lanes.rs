//! Functions over the lanes of a warp from an expression over one lane.

/// A function over all lanes from one over a lane.
macro_rules! lanes {
    ($x:ident => $e:expr) => {
        |d, a| {
            for i in 0..32 {
                let $x = a[i];
                d[i] = $e;
            }
        }
    };
    ($x:ident, $y:ident => $e:expr) => {
        |d, a, b| {
            for i in 0..32 {
                let ($x, $y) = (a[i], b[i]);
                d[i] = $e;
            }
        }
    };
    ($x:ident, $y:ident, $z:ident => $e:expr) => {
        |d, a, b, c| {
            for i in 0..32 {
                let ($x, $y, $z) = (a[i], b[i], c[i]);
                d[i] = $e;
            }
        }
    };
}

pub(crate) use lanes;

/// A mask of the lanes in which a comparison holds.
macro_rules! test {
    ($x:ident, $y:ident => $e:expr) => {
        |a, b| {
            let mut mask = 0u32;
            for i in 0..32 {
                let ($x, $y) = (a[i], b[i]);
                mask |= u32::from($e) << i;
            }
            mask
        }
    };
}

pub(crate) use test;
