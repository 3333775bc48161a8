//! The launches in a report of `tilec bench --format json`.

use super::report::SCHEMA;
use crate::xray::Measured;
use serde_json::Value;

/// Microseconds of an hour: no launch takes as long.
const MOST_US: f64 = 3.6e9;

/// The measurements: every variant at every problem that has times.
///
/// # Errors
/// If the text is not such a report, has no measurement, or has an invalid time; the text says which.
pub fn measured(text: &str) -> Result<Vec<Measured>, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
    let schema = json["schema"].as_str().unwrap_or("");
    if schema != SCHEMA {
        return Err(format!("expected `{SCHEMA}`, found the schema `{schema}`"));
    }
    let field = |of: &Value, name: &str| of[name].as_str().unwrap_or("").to_owned();
    let by = [field(&json, "date"), field(&json, "command")].join(" ").trim().to_owned();
    let device = json["machine"]["name"].as_str().unwrap_or("an unnamed device");
    let mut out = Vec::new();
    for problem in list(&json["problems"]) {
        let args = problem["args"].as_object().into_iter().flatten();
        let args: std::collections::BTreeMap<_, _> = args.map(|(name, n)| (name.clone(), n.to_string())).collect();
        for row in list(&problem["rows"]) {
            let Some(us) = median(&row["us"])? else { continue };
            let variant = row["variant"].as_u64().and_then(|v| json["variants"].get(usize::try_from(v).ok()?));
            let variant = variant.unwrap_or(&Value::Null);
            let values = list(&row["chosen"]).flat_map(|kernel| list(&kernel["values"]));
            out.push(Measured {
                us,
                entry: field(&json, "entry"),
                target: field(variant, "target"),
                variant: field(variant, "label"),
                device: device.to_owned(),
                args: args.clone(),
                chosen: values.filter_map(|v| Some((v[0].as_str()?.to_owned(), v[1].to_string()))).collect(),
                by: by.clone(),
            });
        }
    }
    match (out.is_empty(), json["simulated"].as_str()) {
        (false, _) => Ok(out),
        (true, Some(why)) => Err(format!("nothing was measured in it: the simulator counted instead ({why})")),
        (true, None) => Err("nothing was measured in it".to_owned()),
    }
}

fn list(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

/// The median of the times of rounds; `None`: there are none.
fn median(rounds: &Value) -> Result<Option<f64>, String> {
    let mut us: Vec<f64> = Vec::new();
    for time in list(rounds) {
        match time.as_f64() {
            Some(x) if x > 0.0 && x < MOST_US => us.push(x),
            _ => return Err(format!("a launch cannot take {time} microseconds")),
        }
    }
    us.sort_by(f64::total_cmp);
    Ok(us.get(us.len() / 2).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(us: Value) -> Value {
        let rows = json!([{ "variant": 0, "us": [] }, { "variant": 1, "us": us }]);
        json!({
            "schema": SCHEMA, "date": "2026-11-27", "command": "tilec bench x.tile", "entry": "x", "machine": { "name": "H200" },
            "variants": [{ "label": "a", "target": "sm_80" }, { "label": "b", "target": "sm_90a" }],
            "problems": [{ "args": { "M": 64 }, "rows": rows }],
        })
    }

    #[test]
    fn measurements_are_read_from_the_report_of_bench() {
        let all = measured(&report(json!([3.0, 1.0, 2.0])).to_string()).expect("a report");
        let [m] = &all[..] else { panic!("one row has times: {all:?}") };
        assert_eq!((m.us, m.device.as_str(), m.sizes().as_str()), (2.0, "H200", "M=64"));
        assert_eq!((m.entry.as_str(), m.target.as_str(), m.variant.as_str()), ("x", "sm_90a", "b"));
        assert_eq!(m.by, "2026-11-27 tilec bench x.tile");
        assert!(measured("{}").is_err_and(|e| e.contains("tilec.bench")));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for us in [json!([0]), json!([-5]), json!([1e308]), json!([null]), json!([1.0, -1.0])] {
            assert!(
                measured(&report(us.clone()).to_string()).is_err_and(|e| e.contains("a launch cannot take")),
                "{us}"
            );
        }
        let mut none = report(json!([]));
        assert!(measured(&none.to_string()).is_err_and(|e| e == "nothing was measured in it"));
        none["simulated"] = "no driver".into();
        assert!(measured(&none.to_string()).is_err_and(|e| e.contains("simulator counted instead (no driver)")));
    }
}
