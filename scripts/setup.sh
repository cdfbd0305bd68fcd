#!/usr/bin/env bash
# Makes sure that everything needed to build and test Braid is there: a C compiler and linker, git,
# the pinned Rust toolchain, and libraries that only tests use. `setup.sh build` leaves the latter
# out. Installs Debian or Ubuntu packages that are missing when it may (root, or sudo without a
# question); else it says what to run. Prints what it changes; quiet when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

# Prints how to run a command as root, or nothing when that is impossible.
root_prefix() {
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
        echo sudo
    elif command -v sudo > /dev/null && [ -t 0 ] && [ -z "${CI:-}" ]; then
        echo sudo # asks for the password
    fi
}

# install_packages PACKAGE...
install_packages() {
    local prefix
    prefix=$(root_prefix)
    if ! command -v apt-get > /dev/null; then
        fail "missing: $*. This is no Debian or Ubuntu: install them with your package manager, then run again."
    fi
    if [ -z "$prefix" ]; then
        fail "missing: $*. Run as root: apt-get update && apt-get install -y $*"
    fi
    say "installing with apt-get: $*"
    $prefix apt-get update -q >&2 || fail "apt-get update failed: is there a network? Then install by hand: $*"
    DEBIAN_FRONTEND=noninteractive $prefix apt-get install -y -q --no-install-recommends "$@" >&2 \
        || fail "apt-get could not install: $*"
}

missing=()
# gcc brings cc and, with libc6-dev, what the linker needs.
command -v cc > /dev/null || missing+=(gcc libc6-dev)
command -v git > /dev/null || missing+=(git)
[ -d /etc/ssl/certs ] && [ -n "$(ls -A /etc/ssl/certs)" ] || missing+=(ca-certificates)
# The solver of `braid verify`, which alone needs it: where it cannot be installed, it is left out.
if ! command -v z3 > /dev/null && ! command -v cvc5 > /dev/null \
    && command -v apt-get > /dev/null && [ -n "$(root_prefix)" ]; then
    missing+=(z3)
fi
# The ports by DPDK (165 MB), which tests alone need.
if [ "${1:-}" != build ] && ! pkg-config --exists libdpdk 2> /dev/null \
    && command -v apt-get > /dev/null && [ -n "$(root_prefix)" ]; then
    missing+=(libdpdk-dev pkg-config)
fi
if [ ${#missing[@]} -gt 0 ]; then
    install_packages "${missing[@]}"
fi

# rustup installs to ~/.cargo/bin, which a fresh shell may not have in its path yet.
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
rustup_remedy="install rustup from https://rustup.rs:
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --default-toolchain none
then run this again in a new shell."

if ! command -v rustup > /dev/null && ! command -v cargo > /dev/null; then
    if command -v apt-cache > /dev/null && apt-cache show rustup > /dev/null 2>&1; then
        install_packages rustup
    else
        fail "missing: the Rust toolchain $channel. This system has no package rustup: $rustup_remedy"
    fi
fi

if command -v rustup > /dev/null; then
    if ! rustup run "$channel" cargo clippy --version > /dev/null 2>&1 \
        || ! rustup run "$channel" cargo fmt --version > /dev/null 2>&1; then
        say "installing Rust $channel with rustup"
        rustup toolchain install "$channel" --profile minimal --component rustfmt,clippy >&2 \
            || fail "rustup could not install Rust $channel: is there a network?"
    fi
else
    # A Rust without rustup: it must be at least the pinned version.
    have=$(cargo --version | cut -d ' ' -f 2)
    lowest=$(printf '%s\n%s\n' "$have" "$channel" | sort -V | head -n 1)
    [ "$lowest" = "$channel" ] || fail "cargo is version $have, but $channel is needed: $rustup_remedy"
    for tool in fmt clippy; do
        cargo $tool --version > /dev/null 2>&1 || fail "cargo $tool is missing: install it, or $rustup_remedy"
    done
fi
