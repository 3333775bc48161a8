//! Contracts as text, and back.

use super::*;
use crate::contract::number::Number;
use pretty_assertions::{assert_eq, assert_ne};

/// The contract of a matrix product, with every kind of parameter but maps.
pub(crate) fn gemm() -> Contract {
    Contract::from_json(include_str!("tests/gemm.json")).expect("a contract").remove(0)
}

#[test]
fn reading_back_gives_the_same_contracts() {
    let one = gemm();
    let mut other = gemm();
    other.entry = "other".to_owned();
    for contracts in [vec![one.clone()], vec![one, other], vec![]] {
        assert_eq!(Contract::from_json(&to_json(&contracts)).expect("our own JSON reads back"), contracts);
    }
}

#[test]
fn an_id_says_what_a_contract_says() {
    let one = gemm().identified();
    let mut other = gemm();
    other.grid[0] = "ceildiv(N, 64)".to_owned();
    let other = other.identified();
    let ptx = format!("// x\n// {}\n.version 6.4\n", one.mark().expect("it has an id"));
    assert_eq!(Contract::id_in(&ptx, "gemm"), one.id.as_deref());
    assert_eq!(Contract::id_in(&ptx, "gem"), None);
    assert_eq!(one.clone().identified(), one, "an id is not a part of what it names");
    assert_ne!(one.id, other.id);
    assert_eq!(Contract::from_json(&to_json(std::slice::from_ref(&one))).expect("our own JSON reads back"), [one]);
}

#[test]
fn infinite_defaults_are_words() {
    for (value, word) in [(f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let mut contract = gemm();
        for param in &mut contract.params {
            if let ParamKind::Scalar { default, .. } = &mut param.kind {
                *default = Some(Number::Float(value));
            }
        }
        let json = to_json(&[contract.clone()]);
        assert!(json.contains(&format!("\"default\": \"{word}\"")), "{json}");
        assert_eq!(Contract::from_json(&json).expect("our own JSON reads back"), [contract]);
    }
    let nan = serde_json::to_string(&Number::Float(f64::NAN)).expect("JSON");
    assert_eq!(nan, "\"nan\"");
    let back: Number = serde_json::from_str(&nan).expect("reads back");
    assert!(back.to_f64().is_nan());
    assert!(serde_json::from_str::<Number>("\"five\"").is_err());
}

#[test]
fn json_has_the_documented_fields() {
    let json: serde_json::Value = serde_json::from_str(&to_json(&[gemm()])).expect("JSON");
    assert_eq!(json["schema"], "tilec.launch/1");
    assert_eq!(json["ptx_version"], "6.4");
    assert_eq!(
        json["params"][2],
        serde_json::json!({
            "name": "C", "kind": "tensor", "type": "f32", "align": 16, "access": "read_write",
            "shape": ["M", "N"], "strides": ["C_ld", "1"],
        })
    );
    assert_eq!(json["params"][3], serde_json::json!({"name": "M", "kind": "size", "type": "u32"}));
    assert_eq!(json["params"][6], serde_json::json!({"name": "A_ld", "kind": "stride", "type": "i64", "packed": "K"}));
    assert_eq!(
        json["params"][9],
        serde_json::json!({"name": "alpha", "kind": "scalar", "type": "f32", "default": 1.0})
    );
}

#[test]
fn what_is_not_a_contract_is_refused() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"schema": "tilec.launch/4"}"#,
        r#"{"schema": "tilec.launch/2"}"#,
        r#"{"schema": "tilec.launch/1"}"#,
    ] {
        assert!(Contract::from_json(text).is_err(), "{text}");
    }
    let wrong_type = to_json(&[gemm()]).replace("\"f32\"", "\"f33\"");
    assert!(Contract::from_json(&wrong_type).is_err());
}
