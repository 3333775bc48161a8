//! The kernels of a file, at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Stack of a thread: that of the main thread, on which a single kernel is compiled.
const STACK: usize = 8 << 20;

/// What `f` makes of each item, in order. One item is worked on by the calling thread.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
    // How many there may be is read from several files.
    let available = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if items.len() < 2 { 1 } else { available().min(items.len()) };
    if threads < 2 {
        return items.into_iter().map(f).collect();
    }
    let slots: Vec<Mutex<(Option<T>, Option<R>)>> = items.into_iter().map(|t| Mutex::new((Some(t), None))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
            let item = slot.lock().unwrap_or_else(PoisonError::into_inner).0.take();
            let result = item.map(&f);
            slot.lock().unwrap_or_else(PoisonError::into_inner).1 = result;
        }
    };
    thread::scope(|scope| {
        let start = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        // Where no thread can be had, this one does the rest.
        let others: Vec<_> = (1..threads).map_while(|i| start(i).ok()).collect();
        work();
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner).1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        for n in [0, 1, 2, 100] {
            assert_eq!(map((0..n).collect(), |i: i32| i * i), (0..n).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_comes_through() {
        let panicked = std::panic::catch_unwind(|| map(vec![1, 2, 3], |i| assert_ne!(i, 3, "on purpose")));
        assert!(panicked.is_err());
    }
}
