//! The modifiers of an instruction, and what they say by themselves.

use super::error::Result;
use super::lex::Pos;
use crate::program::Area;
use crate::program::types::{Space, Ty};

/// The modifiers of the current instruction.
pub(crate) struct Mods<'w> {
    pub(crate) words: &'w [&'w str],
    pub(crate) pos: Pos,
}

impl Mods<'_> {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub(crate) fn last_type(&self) -> Option<Ty> {
        self.words.iter().rev().find_map(|w| Ty::from_word(w))
    }

    pub(crate) fn first_type(&self) -> Option<Ty> {
        self.words.iter().find_map(|w| Ty::from_word(w))
    }

    pub(crate) fn wide_type(&self) -> Option<Ty> {
        Some(match self.last_type()? {
            Ty::U16 => Ty::U32,
            Ty::S16 => Ty::S32,
            Ty::U32 => Ty::U64,
            Ty::S32 => Ty::S64,
            _ => return None,
        })
    }

    /// Elements of `.v2`, `.v4`.
    pub(crate) fn vector(&self) -> usize {
        if self.has("v2") {
            2
        } else if self.has("v4") {
            4
        } else {
            1
        }
    }

    /// Type and number of the registers of an asynchronous product's result: `m64n16k16` of f32 takes 8.
    pub(crate) fn accumulators(&self, pos: Pos) -> Result<(Ty, usize)> {
        let n = self.words.iter().find_map(|w| w.strip_prefix("m64n")?.split_once('k')?.0.parse::<usize>().ok());
        match (n, self.first_type()) {
            (Some(n), Some(Ty::F16)) => Ok((Ty::F16x2, n / 4)),
            (Some(n), Some(ty)) => Ok((ty, n / 2)),
            _ => Err(pos.error("this product has no shape")),
        }
    }

    /// The memory that a word names; generic, if none does.
    pub(crate) fn area(&self) -> Area {
        let space = self.words.iter().find_map(|w| match *w {
            "global" => Some(Space::Global),
            "shared" | "shared::cta" => Some(Space::Shared),
            "shared::cluster" => Some(Space::Cluster),
            "local" => Some(Space::Local),
            "param" | "param::entry" | "param::func" => Some(Space::Param),
            "const" => Some(Space::Const),
            _ => None,
        });
        space.map_or(Area::Generic, Area::In)
    }

    pub(crate) fn ty(&self) -> Result<Ty> {
        self.last_type().ok_or_else(|| self.pos.error("this instruction lacks a type"))
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.pos.error(message))
    }

    pub(crate) fn limit<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.pos.limit(message))
    }
}
