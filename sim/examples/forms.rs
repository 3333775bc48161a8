//! Writes the instruction table as a module with one instruction on a line, and whether the simulator accepts each: for
//! `scripts/check_sim_table.sh`, which compares that with the assembler.
//! `cargo run -p tilec-sim --example forms TARGET VERSION PTX VERDICTS`.
//!
//! Rows with very many spellings are represented by those that differ from the simplest one in at most two modifiers.

use std::collections::BTreeSet;
use tilec_sim::{InstructionForm, Program, instruction_forms};

/// Registers that the script declares, `%NAME0` to `%NAME31` and more for each of these.
fn register(ty: &str) -> Option<&'static str> {
    Some(match ty {
        "pred" => "p",
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => "h",
        "b8" | "u8" | "s8" | "b32" | "u32" | "s32" | "f16x2" | "bf16x2" | "u16x2" | "s16x2" | "tf32" => "r",
        "b64" | "u64" | "s64" => "l",
        "f32" => "f",
        "f64" => "d",
        _ => return None,
    })
}

/// The instruction with operands, each register used once.
fn spell(form: &InstructionForm) -> Option<String> {
    if form.modifiers.contains(&"param::func") {
        // A parameter of a function needs a declaration, and a result needs a call before.
        return None;
    }
    let types: Vec<&str> = form.modifiers.iter().copied().filter(|w| register(w).is_some()).collect();
    let last = types.last().copied();
    let elements = if form.modifiers.contains(&"v2") {
        2
    } else if form.modifiers.contains(&"v4") {
        4
    } else {
        1
    };
    let shared = form.modifiers.iter().any(|w| w.starts_with("shared") || matches!(*w, "m8n8"));
    let (mut next, mut args) = (0, Vec::new());
    let mut fresh = |class: &str| {
        next += 1;
        format!("%{class}{}", next - 1)
    };
    for token in form.operands.split_ascii_whitespace() {
        let (head, of) = token
            .trim_end_matches('?')
            .split_once(':')
            .map_or((token.trim_end_matches('?'), None), |(h, t)| (h, Some(t)));
        let (kind, count) = head.split_once('*').map_or((head, None), |(k, n)| (k, n.parse::<usize>().ok()));
        let ty = match of {
            Some("U") => types.first().copied(),
            Some("W") => match last {
                Some("u16" | "s16") => Some("u32"),
                _ => Some("u64"),
            },
            Some(ty) => Some(ty),
            None => last,
        };
        let class = ty.and_then(register);
        let vector = |n: usize, fresh: &mut dyn FnMut(&str) -> String| {
            let items: Option<Vec<String>> = (0..n).map(|_| class.map(&mut *fresh)).collect();
            items.map(|items| format!("{{{}}}", items.join(", ")))
        };
        args.push(match kind.trim_end_matches('_') {
            "dv" | "sv" if elements > 1 => vector(elements, &mut fresh)?,
            "d" | "s" | "x" | "xd" | "dv" | "sv" => match count {
                Some(n) => vector(n, &mut fresh)?,
                None => fresh(class?),
            },
            "ds" | "ss" => fresh("r"),
            "dm" => fresh("r") + ".h1",
            "p" | "q" => fresh("p"),
            "pq" => format!("{}|{}", fresh("p"), fresh("p")),
            // A box of a tensor, with the instruction's number of dimensions.
            "mt" => {
                let rank = form.modifiers.iter().find_map(|w| w.strip_suffix('d')?.parse::<usize>().ok())?;
                let at: Vec<String> = (0..rank).map(|_| fresh("r")).collect();
                format!("[%l31, {{{}}}]", at.join(", "))
            }
            // The accumulator of an asynchronous product.
            "wd" => {
                let n: usize =
                    form.modifiers.iter().find_map(|w| w.strip_prefix("m64n")?.split_once('k')?.0.parse().ok())?;
                let half = form.modifiers.iter().find_map(|w| register(w).map(|_| *w)) == Some("f16");
                let class = if types.first() == Some(&"f32") { "f" } else { "r" };
                let list: Vec<String> =
                    (0..n / if half { 4 } else { 2 }).map(|i| format!("%{class}{}", 100 + i)).collect();
                format!("{{{}}}", list.join(", "))
            }
            "dp" => format!("{}|{}", fresh(class?), fresh("p")),
            "mg" => "[%l31]".to_owned(),
            "m" if of == Some("cluster") => "[%r31]".to_owned(),
            "m" if of == Some("shared") || (of.is_none() && shared) => "[%r31]".to_owned(),
            "m" => "[%l31]".to_owned(),
            "i" => match form.opcode {
                "discard" | "applypriority" | "fence" => "128",
                "wgmma" => "1",
                "setmaxnreg" => "64",
                "cp" if form.modifiers.contains(&"wait_group") => "1",
                "cp" => "16",
                _ => "3",
            }
            .to_owned(),
            "l" => "NEXT".to_owned(),
            _ => return None,
        });
    }
    let words: String = form.modifiers.iter().map(|w| format!(".{w}")).collect();
    Some(format!("{}{words} {};", form.opcode, args.join(", ")).replace(" ;", ";"))
}

/// The spellings that represent a row.
fn thinned(forms: &[InstructionForm]) -> Vec<&InstructionForm> {
    const ALL: usize = 1500;
    if forms.len() <= ALL {
        return forms.iter().collect();
    }
    let least = forms.iter().map(|f| f.modifiers.len()).min().unwrap_or(0);
    let simplest: BTreeSet<&str> = forms
        .iter()
        .find(|f| f.modifiers.len() == least)
        .map(|f| f.modifiers.iter().copied().collect())
        .unwrap_or_default();
    let other = |f: &&InstructionForm| f.modifiers.iter().filter(|w| !simplest.contains(*w)).count() <= 2;
    forms.iter().filter(other).collect()
}

/// A module with these instructions.
fn module(target: &str, version: &str, body: &str) -> String {
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n\
         .reg .pred %p<32>; .reg .b16 %h<32>; .reg .b32 %r<232>; .reg .b64 %l<32>; .reg .f32 %f<232>; .reg .f64 %d<32>;\n\
         {body}ret;\n}}\n"
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, version, ptx, verdicts] = args.as_slice() else {
        return Err("forms TARGET VERSION PTX VERDICTS".into());
    };
    let forms = instruction_forms();
    let (mut body, mut said) = (String::new(), String::new());
    for row in forms.chunk_by(|a, b| a.row == b.row) {
        for (i, text) in thinned(row).into_iter().filter_map(spell).enumerate() {
            let label = format!("N{}_{i}", row[0].row);
            let line = match text.contains("NEXT") {
                true => format!("{} {label}:\n", text.replace("NEXT", &label)),
                false => text + "\n",
            };
            let taken = Program::parse(&module(target, version, &line)).is_ok();
            said.push_str(if taken { "ok\n" } else { "no\n" });
            body.push_str(&line);
        }
    }
    std::fs::write(ptx, module(target, version, &body))?;
    std::fs::write(verdicts, said)?;
    Ok(())
}
