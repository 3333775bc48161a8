#!/usr/bin/env bash
# Builds and tests the crate of docs/burn.md as a user's crate is built, on the simulator. It compiles Burn, which takes minutes.
set -eu
cd "$(dirname "$0")/../examples/burn"
cargo test --quiet
