//! Conversions (PTX 9.7.9.21).

use super::row::{Row, table};
use crate::parse::{sem, sem_float};

pub(super) const ROWS: &[Row] = table! {
    "cvt" "u8|s8|u16|s16|u32|s32|u64|s64 u8|s8|u16|s16|u32|s32|u64|s64", "dv:U sv" => sem::cvt_int;
    // `.sat` is legal only where a value can be out of range.
    "cvt" "sat s8 u8", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|u16|u32|u64 s8", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|s16 u16", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|u32|u64 s16", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|s32 u32", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|u32|u64 s32", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|u32|s32|s64 u64", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|u32|s32|u64 s64", "dv:U sv" => sem::cvt_int;
    "cvt" "rn|rz|rm|rp sat? f16|f64 u8|s8|u16|s16|u32|s32|u64|s64", "d:U sv" => sem_float::cvt_from_int;
    "cvt" "rn|rz|rm|rp ftz? sat? f32 u8|s8|u16|s16|u32|s32|u64|s64", "d:U sv" => sem_float::cvt_from_int;
    // With bf16 the registers have the size of the type.
    "cvt" "rn|rz|rm|rp bf16 u8|s8|u16|s16|u32|s32|u64|s64", "d:U s" => sem_float::cvt_from_int;
    "cvt" "rni|rzi|rmi|rpi u8|s8|u16|s16|u32|s32|u64|s64 bf16", "d:U s" => sem_float::cvt_to_int;
    "cvt" "rni|rzi|rmi|rpi ftz? sat? u8|s8|u16|s16|u32|s32|u64|s64 f32", "dv:U s" => sem_float::cvt_to_int;
    "cvt" "rni|rzi|rmi|rpi sat? u8|s8|u16|s16|u32|s32|u64|s64 f16|f64", "dv:U s" => sem_float::cvt_to_int;
    // To an integral value, or none at all.
    "cvt" "rni|rzi|rmi|rpi? sat? f16 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "rni|rzi|rmi|rpi? ftz? sat? f32 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "rni|rzi|rmi|rpi? sat? f64 f64", "d:U s" => sem_float::cvt_float;
    "cvt" "ftz? sat? f32 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "ftz? sat? f64 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "sat? f64 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp ftz? sat? f16 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp ftz? sat? f32 f64", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp sat? f16 f64", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz satfinite? relu f16 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz satfinite f16 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz satfinite? relu? bf16 f32", "d:bf16 s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp ftz bf16 f32", "d:bf16 s" => sem_float::cvt_float;
    "cvt" "rm|rp bf16 f32", "d:bf16 s" => sem_float::cvt_float;
    // ptxas takes a rounding where there is nothing to round.
    "cvt" "rn|rz|rm|rp? ftz? f32 bf16", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp? f64 bf16", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp bf16 f64", "d:U s" => sem_float::cvt_float;
    // Neither type contains the other; without a rounding modifier it rounds to nearest.
    "cvt" "rn|rz|rm|rp? bf16 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp? f16 bf16", "d:U s" => sem_float::cvt_float;
    "cvt" "rni|rzi|rmi|rpi? bf16 bf16", "d:U s" => sem_float::cvt_float;
    "cvt" "rna satfinite? tf32 f32", "d:tf32 s" => sem_float::cvt_float;
    "cvt" "rn|rz relu? tf32 f32", "d:tf32 s" => sem_float::cvt_float;
    "cvt" "pack sat u16|s16 s32", "d:b32 s:s32 s:s32" => sem::cvt_pack_int;
    "cvt" "pack sat u8|s8|u4|s4|u2|s2 s32 b32", "d:b32 s:s32 s:s32 s:b32" => sem::cvt_pack_int;
    "cvt" "rn|rz satfinite? relu? f16x2|bf16x2 f32", "d:U s:f32 s:f32" => sem_float::cvt_pack;
    "cvt" "rn satfinite relu? e4m3x2|e5m2x2 f32", "d:U s:f32 s:f32" => sem_float::cvt_pack;
    "cvt" "rn satfinite relu? e4m3x2|e5m2x2 f16x2", "d:U s" => sem_float::cvt_fp8;
    "cvt" "rn relu? f16x2 e4m3x2|e5m2x2", "d:U s" => sem_float::cvt_fp8;
};
