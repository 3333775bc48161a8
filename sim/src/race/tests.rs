//! Programs with and without races.

use super::{Conflict, Issuer, Known, Races, Strength};

fn who(warp: usize, lane: usize, pc: u32) -> Issuer {
    Issuer { warp, lane, pc, seq: pc, strength: Strength::Weak, copy: false }
}

fn barrier(r: &mut Races) {
    let mut all = Known::default();
    for w in 0..2 {
        r.clocks.release(w, u32::MAX, u32::MAX, &mut all);
    }
    for w in 0..2 {
        r.clocks.acquire(w, u32::MAX, u32::MAX, &all);
    }
}

#[test]
fn a_barrier_orders_and_its_absence_does_not() {
    let mut r = Races::new(2, 64, 0);
    r.write(who(0, 3, 10), 8, 4, false).expect("first access");
    assert_eq!(
        r.read(who(1, 0, 11), 8, 4),
        Err(Conflict { warp: 0, lane: 3, pc: 10, wrote: true, copy: false, constant: false, byte: 0 })
    );
    barrier(&mut r);
    r.read(who(1, 0, 11), 8, 4).expect("ordered by the barrier");
    assert_eq!(
        r.write(who(0, 3, 12), 8, 4, false),
        Err(Conflict { warp: 1, lane: 0, pc: 11, wrote: false, copy: false, constant: false, byte: 0 })
    );
    barrier(&mut r);
    r.write(who(0, 3, 12), 8, 4, false).expect("ordered by the barrier");
}

#[test]
fn every_one_of_many_readers_counts() {
    for late in 0..3 {
        let mut r = Races::new(4, 64, 0);
        for w in 0..3 {
            r.read(who(w, 1, 5), 0, 4).expect("reads never conflict");
        }
        // The writer acquires from all readers but one.
        let mut known = Known::default();
        for w in (0..3).filter(|w| *w != late) {
            r.clocks.release(w, u32::MAX, u32::MAX, &mut known);
        }
        r.clocks.acquire(3, u32::MAX, u32::MAX, &known);
        let conflict = r.write(who(3, 0, 6), 0, 4, false).expect_err("one reader is unordered");
        assert_eq!(conflict.warp, late);
    }
}

#[test]
fn lanes_of_a_warp_are_unordered_within_an_epoch() {
    let mut r = Races::new(1, 64, 0);
    r.write(who(0, 0, 1), 0, 4, false).expect("first access");
    assert!(r.read(who(0, 1, 2), 0, 4).is_err());
    r.clocks.synchronise(0, u32::MAX, u32::MAX);
    r.read(who(0, 1, 2), 0, 4).expect("the warp synchronised");
    r.read(who(0, 2, 2), 0, 4).expect("reads never conflict");
    assert!(r.write(who(0, 1, 3), 0, 4, false).is_err());
}

#[test]
fn bytes_of_a_word_are_apart() {
    let mut r = Races::new(2, 64, 0);
    r.write(who(0, 0, 1), 0, 2, false).expect("first access");
    r.write(who(1, 0, 2), 2, 2, false).expect("other half");
    assert!(r.write(who(1, 0, 3), 1, 1, false).is_err());
    assert!(r.read(who(1, 0, 4), 0, 4).is_err());
    barrier(&mut r);
    r.read(who(1, 0, 4), 0, 4).expect("ordered by the barrier");
    assert!(r.write(who(0, 0, 5), 0, 4, false).is_err());
    barrier(&mut r);
    r.write(who(0, 0, 5), 0, 4, false).expect("ordered by the barrier");
    assert!(r.read_words(who(0, 0, 5), 0, 1), "remembered as a whole again");
}

#[test]
fn one_instruction_may_write_one_value_twice() {
    let mut r = Races::new(1, 64, 0);
    r.write(who(0, 0, 1), 0, 4, false).expect("first access");
    r.write(who(0, 1, 1), 0, 4, true).expect("same value, same instruction");
    r.write(Issuer { seq: 9, ..who(0, 1, 1) }, 0, 4, true).expect("apart from the others");
    assert!(r.write(who(0, 2, 1), 0, 4, false).is_err());
    assert!(r.write(who(0, 2, 2), 0, 4, true).is_err(), "another instruction");
    let copy = |lane, pc| Issuer { copy: true, ..who(0, lane, pc) };
    r.write(copy(1, 3), 4, 4, false).expect("first access");
    assert!(r.write(who(0, 2, 3), 4, 4, true).is_err(), "while it is on its way");
    r.write(copy(2, 3), 4, 4, true).expect("a copy of the same");
}
