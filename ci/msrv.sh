#!/usr/bin/env bash
# The published crates compile with the oldest compiler that they promise (`rust-version` in Cargo.toml).
#
# Where rustup has or can fetch that toolchain, it is used. On Debian it is unpacked from the distribution's packages,
# without being installed.
source "$(dirname "$0")/lib.sh"

msrv=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
compiler=target/ci/msrv/rustc

unpack_from_debian() {
    local work=$PWD/target/ci/msrv version
    [ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null || return 1
    apt_update || return 1
    version=$(apt-cache madison rustc-web | awk -v wanted="^$msrv[.]" '$3 ~ wanted {print $3; exit}')
    [ -n "$version" ] || return 1
    rm -rf "$work/packages" "$work/root" && mkdir -p "$work/packages" "$work/root" || return 1
    (
        cd "$work/packages" || exit 1
        llvm=$(apt-cache depends "libstd-rust-web-$msrv" | sed -n 's/.*Depends: \(libllvm.*\)/\1/p')
        # What LLVM needs, too: a slim image has not all of it.
        needed=$(apt-cache depends "$llvm" | sed -n 's/.*Depends: \(lib[^ ]*\)$/\1/p' | grep -v '^libc6$')
        # shellcheck disable=SC2086
        apt-get download -qq "rustc-web=$version" "libstd-rust-web-dev=$version" "libstd-rust-web-$msrv" "$llvm" $needed \
            2>/dev/null || exit 1
        for package in *.deb; do dpkg -x "$package" "$work/root" || exit 1; done
    ) || return 1
    cat >"$compiler" <<SCRIPT
#!/bin/sh
export LD_LIBRARY_PATH=$work/root/usr/lib:$work/root/usr/lib/x86_64-linux-gnu:$work/root/lib/x86_64-linux-gnu
exec $work/root/usr/bin/rustc "\$@"
SCRIPT
    chmod +x "$compiler"
    runs "$compiler"
}

# Whether the compiler is there and is the one promised. One that does not run is not kept.
runs() {
    "$1" --version 2>/dev/null | grep -q "^rustc $msrv[.]" || { rm -f "$1"; return 1; }
}

if ! runs "$compiler"; then
    mkdir -p target/ci/msrv
    if command -v rustup >/dev/null && rustup run "$msrv" rustc --version >/dev/null 2>&1; then
        printf '#!/bin/sh\nexec rustup run %s rustc "$@"\n' "$msrv" >"$compiler" && chmod +x "$compiler"
    elif ! unpack_from_debian; then
        if command -v rustup >/dev/null && rustup toolchain install "$msrv" --profile minimal >/dev/null 2>&1; then
            printf '#!/bin/sh\nexec rustup run %s rustc "$@"\n' "$msrv" >"$compiler" && chmod +x "$compiler"
        else
            skip "no rustc $msrv could be had"
        fi
    fi
fi

echo "minimum supported Rust version $msrv: $("$compiler" --version)"
export RUSTC=$PWD/$compiler
check="cargo check --quiet --locked --target-dir target/msrv"
$check -p sluicegate-core
$check -p sluicegate-core --features alloc
# `heapless` needs a newer compiler, as its documentation says.
$check -p sluicegate-core --features keyed
$check -p sluicegate-runtime --features keyed,futures
for package in tokio async-std smol; do $check -p "sluicegate-$package"; done
$check -p sluicegate-threads --no-default-features
$check -p sluicegate-threads --all-features
$check -p sluicegate-telemetry --all-features
$check -p sluicegate-http
$check -p sluicegate
