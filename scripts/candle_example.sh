#!/usr/bin/env bash
# Builds and tests the crate of docs/candle.md as a user's crate is built, on the simulator. It compiles candle, which takes minutes.
set -eu
cd "$(dirname "$0")/../examples/candle"
cargo test --quiet
