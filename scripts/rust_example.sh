#!/usr/bin/env bash
# Builds and tests the crate of docs/rust.md as a user's crate is built: build script, launchers, the simulator. Clippy sees the
# generated code too.
set -eu
cd "$(dirname "$0")/../examples/rust"
cargo clippy --quiet --all-targets -- -D warnings
cargo test --quiet
