//! Arithmetic as the hardware does it: conversions, approximations and matrix products, bit for bit.
//!
//! Pure functions over register contents; nothing here knows PTX syntax, warps or memory.
