#!/usr/bin/env bash
# All tests, Rust and C, on a machine with a Rust toolchain, a C compiler and python3. Sets up cmake and ninja itself.
#   tests/run.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-target/c}
. cmake/setup.sh
arenite_setup "$build"

echo "== cargo test"
cargo test --locked --all-features

echo "== ctest"
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release
cmake --build "$build"
cd "$build"
ctest --output-on-failure --parallel 2 -LE hosts
echo "SKIPPED: tests in real engines (label hosts), which install packages of several hundred megabytes: ctest --test-dir $build -L hosts"
