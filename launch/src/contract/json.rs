//! JSON in which an object has every name once.
//!
//! RFC 8259 leaves open what a name means that an object has twice; `serde_json` takes the last. In a launch description that is a
//! mistake, and one that would be hard to find.

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads a value.
///
/// # Errors
/// The text is no JSON, or an object has a name twice; both with line and column.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Unique>(text).map(|unique| unique.0)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(Reader).map(Unique)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Number(n.into()))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(Value::Number(n.into()))
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Value, E> {
        Number::from_f64(x).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::String(s.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("the name `{name}` is there twice in one object")));
            }
            let Unique(value) = object.next_value()?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are() {
        let text = r#"{"a": [1, -2, 2.5, true, null, "x\u00e9"], "b": {"a": {}}, "c": 18446744073709551615}"#;
        assert_eq!(parse(text).expect("JSON"), serde_json::from_str::<Value>(text).expect("JSON"));
        assert!(parse("[1, ]").is_err());
    }

    #[test]
    fn names_are_there_once() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"{"x": [{"a": 1, "b": 2, "a": 3}]}"#] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.starts_with("the name `a` is there twice in one object at line 1"), "{message}");
        }
        assert!(parse(r#"{"a": {"a": 1}, "b": {"a": 1}}"#).is_ok());
    }
}
