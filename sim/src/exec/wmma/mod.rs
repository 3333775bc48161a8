//! `wmma`: tiles that a whole warp loads to fragments, multiplies and stores (PTX 9.7.14.3 to 9.7.14.5).
//!
//! The manual does not define which lane holds which element. The simulator uses what ptxas generates for Turing and
//! later: fragments of `mma` instructions with 16 rows (or, for tiles with 8 rows, 16 columns). If a fragment has more
//! registers than the tile has elements, the rest are copies. Registers with contiguous elements move together, up to 8
//! bytes, and that counts as one access.

mod load_store;
mod product;

pub(crate) use crate::program::wmma::Product;

use crate::exec::access::{addresses, for_lanes};
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::warp::Warp;
use crate::numerics::half::Half;
use crate::numerics::mma::{self, Acc, Elem, Form, Generation, Layout, MmaError, Shape, layout};
use crate::program::types::{R, Space};
use crate::program::wmma::{Extent, Fragment, Part};
use crate::race::Issuer;
use crate::report::ReportKind;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_element_has_one_place() {
        for (shape, types) in [
            ("m16n16k16", [16, 8].as_slice()),
            ("m8n32k16", &[16, 8]),
            ("m32n8k16", &[16, 8]),
            ("m16n16k8", &[32]),
            ("m8n8k4", &[64]),
            ("m8n8k32", &[4]),
            ("m8n8k128", &[1]),
        ] {
            let extent = Extent::from_word(shape).expect("a shape");
            let mut fragments = vec![Fragment { part: Part::C, extent, bits: 32 }];
            if types[0] == 16 {
                fragments.push(Fragment { part: Part::C, extent, bits: 16 });
            }
            for bits in types {
                fragments.extend([Part::A, Part::B].map(|part| Fragment { part, extent, bits: *bits }));
            }
            for f in fragments {
                let mut seen = BTreeSet::new();
                for lane in 0..32 {
                    for i in 0..f.registers() * f.per() {
                        let place = f.place(lane, i / f.per(), i % f.per());
                        assert!(place.0 < f.rows() && place.1 < f.columns(), "{f:?} {place:?}");
                        assert!(seen.insert(place), "{f:?} {place:?} twice");
                    }
                }
                assert_eq!(seen.len(), f.rows() * f.columns(), "{f:?}");
                for row_major in [true, false] {
                    assert_eq!(f.groups(row_major).iter().map(|g| g.1).sum::<usize>(), f.registers() * f.per());
                }
            }
        }
    }
}
