//! Parses PTX files and prints the simulator's result: `cargo run -p tilec-sim --example ptx_check -- FILES`.

use tilec_sim::Program;

#[expect(clippy::print_stdout, reason = "an example for the command line")]
fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        match Program::parse(&text) {
            Ok(program) => {
                let entries: Vec<&str> = program.entries().collect();
                println!("{path}: {} for {}", entries.join(", "), program.target());
            }
            Err(error) => println!("{path}:{error}"),
        }
    }
    Ok(())
}
