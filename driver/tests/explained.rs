//! The examples of `tilec explain`: every message has one that says it, or a reason for having none.

use crate::common::{Dir, command, run};
use tilec::explain::examples::{ALL, WITHOUT};
use tilec::explain::{explain, remark_kinds};
use tilec_ir::codes;

#[test]
fn every_message_has_an_example_or_a_reason() {
    let wanted: Vec<&str> = codes::ALL.iter().map(|(code, ..)| code.0).chain(remark_kinds()).collect();
    for of in &wanted {
        let count = ALL.iter().filter(|e| e.of == *of).count() + WITHOUT.iter().filter(|(w, _)| w == of).count();
        assert_eq!(count, 1, "`{of}` has one example, or one reason for having none");
    }
    let known = |of: &str| wanted.contains(&of);
    assert!(ALL.iter().all(|e| known(e.of)) && WITHOUT.iter().all(|(of, _)| known(of)));
}

#[test]
fn every_example_says_what_it_is_an_example_of() {
    let dir = Dir::new("explained");
    for example in ALL {
        let (file, launch) = example.files(example.of);
        dir.file(&file, example.program.as_bytes());
        if let Some(made) = example.made {
            let mut shell = std::process::Command::new("sh");
            shell.current_dir(&dir.0).args(["-c", &format!("{made} > {file}")]);
            assert!(shell.status().expect("a shell").success(), "{made}");
        }
        if let Some(text) = example.launch {
            dir.file(&launch, text.as_bytes());
        }
        let words = example.words(example.of);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        let compiles = example.args.starts_with('-');
        if compiles && !words.contains(&"-o") {
            words.extend(["-o", "k.ptx"]);
        }
        if compiles && remark_kinds().contains(&example.of) {
            words.push("--remarks");
        }
        let mut tilec = command();
        tilec.current_dir(&dir.0).args(&words).envs(example.variable.split_once('='));
        let run = run(&mut tilec, b"");
        // What an assembler says it says where there is one.
        if example.of == "W0601" && run.stderr.contains("[E0604]") {
            continue;
        }
        let mark = format!("[{}]", example.of);
        let said = run.stderr.contains(&mark);
        assert!(said, "`tilec {}` does not say {mark}: {}{}", words.join(" "), run.stdout, run.stderr);
        assert_ne!(run.status, 101, "{}", run.stderr);
        let text = explain(example.of).expect("explained");
        assert!(text.contains("\nFor example, `"), "{text}");
        // What is shown is what is said.
        assert!(example.options().is_none() || text.contains(&mark), "{text}");
    }
}
