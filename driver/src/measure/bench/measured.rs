//! One launch in a report of `tilec bench --format json`.

use super::report::SCHEMA;
use crate::xray::Measured;
use serde_json::Value;

/// The first variant at the first problem of a report.
///
/// # Errors
/// It is no such report, or nothing was measured; the text says so.
pub fn measured(text: &str) -> Result<Measured, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
    let schema = json["schema"].as_str().unwrap_or("");
    if schema != SCHEMA {
        return Err(format!("expected `{SCHEMA}`, found the schema `{schema}`"));
    }
    let problem = &json["problems"][0];
    let rounds = problem["rows"][0]["us"].as_array().into_iter().flatten();
    let mut us: Vec<f64> = rounds.filter_map(Value::as_f64).collect();
    us.sort_by(f64::total_cmp);
    let us = us.get(us.len() / 2).copied().ok_or("nothing was measured in it")?;
    let args = problem["args"].as_object().into_iter().flatten();
    let sizes: Vec<String> = args.map(|(name, n)| format!("{name}={n}")).collect();
    let field = |name: &str| json[name].as_str().unwrap_or("").to_owned();
    let by = [field("date"), field("command")].join(" ").trim().to_owned();
    let device = json["machine"]["name"].as_str().unwrap_or("an unnamed device").to_owned();
    Ok(Measured { us, device, sizes: sizes.join(" "), by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_read_from_the_report_of_bench() {
        let report = |us: &str| {
            format!(
                "{{\"schema\": \"{SCHEMA}\", \"date\": \"2026-11-27\", \"command\": \"tilec bench x.tile\", \"machine\": {{\"name\": \"H200\"}}, \
                 \"problems\": [{{\"args\": {{\"M\": 64}}, \"rows\": [{{\"us\": [{us}]}}]}}]}}"
            )
        };
        let m = measured(&report("3.0, 1.0, 2.0")).expect("a report");
        assert_eq!((m.us, m.device.as_str(), m.sizes.as_str()), (2.0, "H200", "M=64"));
        assert_eq!(m.by, "2026-11-27 tilec bench x.tile");
        assert!(measured(&report("")).is_err());
        assert!(measured("{}").is_err_and(|e| e.contains("tilec.bench")));
    }
}
