//! Video instructions (PTX 9.7.18).

use super::row::{Row, table};
use crate::parse::sem;

pub(super) const ROWS: &[Row] = table! {
    "vadd" "s32|u32 s32|u32 s32|u32 sat?", "d:u32 ss ss" => sem::video;
    "vadd" "s32|u32 s32|u32 s32|u32 sat? add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vadd" "s32|u32 s32|u32 s32|u32 sat?", "dm ss ss s:u32" => sem::video;
    "vsub" "s32|u32 s32|u32 s32|u32 sat?", "d:u32 ss ss" => sem::video;
    "vsub" "s32|u32 s32|u32 s32|u32 sat? add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vsub" "s32|u32 s32|u32 s32|u32 sat?", "dm ss ss s:u32" => sem::video;
    "vabsdiff" "s32|u32 s32|u32 s32|u32 sat?", "d:u32 ss ss" => sem::video;
    "vabsdiff" "s32|u32 s32|u32 s32|u32 sat? add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vabsdiff" "s32|u32 s32|u32 s32|u32 sat?", "dm ss ss s:u32" => sem::video;
    "vmin" "s32|u32 s32|u32 s32|u32 sat?", "d:u32 ss ss" => sem::video;
    "vmin" "s32|u32 s32|u32 s32|u32 sat? add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vmin" "s32|u32 s32|u32 s32|u32 sat?", "dm ss ss s:u32" => sem::video;
    "vmax" "s32|u32 s32|u32 s32|u32 sat?", "d:u32 ss ss" => sem::video;
    "vmax" "s32|u32 s32|u32 s32|u32 sat? add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vmax" "s32|u32 s32|u32 s32|u32 sat?", "dm ss ss s:u32" => sem::video;
    "vshl" "s32|u32 s32|u32 u32 sat? clamp|wrap", "d:u32 ss ss" => sem::video;
    "vshl" "s32|u32 s32|u32 u32 sat? clamp|wrap add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vshl" "s32|u32 s32|u32 u32 sat? clamp|wrap", "dm ss ss s:u32" => sem::video;
    "vshr" "s32|u32 s32|u32 u32 sat? clamp|wrap", "d:u32 ss ss" => sem::video;
    "vshr" "s32|u32 s32|u32 u32 sat? clamp|wrap add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vshr" "s32|u32 s32|u32 u32 sat? clamp|wrap", "dm ss ss s:u32" => sem::video;
    "vset" "s32|u32 s32|u32 eq|ne|lt|le|gt|ge", "d:u32 ss ss" => sem::video;
    "vset" "s32|u32 s32|u32 eq|ne|lt|le|gt|ge add|min|max", "d:u32 ss ss s:u32" => sem::video;
    "vset" "s32|u32 s32|u32 eq|ne|lt|le|gt|ge", "dm ss ss s:u32" => sem::video;
    "vmad" "s32|u32 s32|u32 s32|u32 po? sat? shr7|shr15?", "d:u32 ss ss ss" => sem::vmad;
    "vadd2" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vsub2" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vavrg2" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vabsdiff2" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vmin2" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vmax2" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vset2" "s32|u32 s32|u32 eq|ne|lt|le|gt|ge add?", "ds ss ss s:u32" => sem::simd;
    "vadd4" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vsub4" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vavrg4" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vabsdiff4" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vmin4" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vmax4" "s32|u32 s32|u32 s32|u32 sat|add?", "ds ss ss s:u32" => sem::simd;
    "vset4" "s32|u32 s32|u32 eq|ne|lt|le|gt|ge add?", "ds ss ss s:u32" => sem::simd;
};
