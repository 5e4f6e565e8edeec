#!/usr/bin/env bash
# The core on targets without an operating system: it builds there, and it decides there as it does here.
#
# On emulated Cortex-M4, Cortex-M0 and RISC-V processors the programs of ci/bare-metal run, and must print byte for byte what
# they print on this machine; and an interrupt races the main loop there. On the Cortex-M processors, tasks of embassy's executor wait
# for tokens. Needs QEMU, and a compiler that has the targets: rustup's if they are installed, else Debian's, for which cargo builds
# the library, else rustup's after fetching them.
source "$(dirname "$0")/lib.sh"

# Without compare-and-swap. On the others `critical-section` has no effect: see docs/BARE_METAL.md.
no_swap=(thumbv6m-none-eabi riscv32imc-unknown-none-elf)
run=("${no_swap[@]}" thumbv7em-none-eabi)
targets=("${run[@]}" thumbv7em-none-eabihf)
# With the system timer that the program for embassy takes its time from.
cortex_m=(thumbv7em-none-eabi thumbv6m-none-eabi)
target_dir=$PWD/target/bare-metal
printed=$PWD/target/ci/bare-metal
build_std=()

main() {
    local target
    install_qemu || skip "bare metal: no QEMU for Arm and RISC-V (qemu-system-arm, qemu-system-misc)"
    find_compiler || skip "bare metal: no compiler for ${targets[*]}"
    echo "compiler: $("${RUSTC:-rustc}" --version)"

    build_library
    rm -rf "$printed" && mkdir -p "$printed"
    print_on_host >"$printed/host"
    for target in "${no_swap[@]}"; do
        # One by one: what implements a critical section on one of them must not be asked for on the other.
        build_programs critical-section "$target"
        run_programs "$target" critical-section
    done
    build_programs single-core "${run[@]}"
    for target in "${run[@]}"; do run_programs "$target" single-core; done
    build --bin embassy --features single-core,embassy "${cortex_m[@]/#/--target=}"
    for target in "${cortex_m[@]}"; do run_embassy "$target"; done
    report_sizes
}

# The library as an application depends on it, with each set of features that it offers to targets without threads.
build_library() {
    local features
    for features in "" heapless alloc keyed; do
        build --lib --features "single-core,$features" "${targets[@]/#/--target=}"
        echo "builds with ${features:-no features}: ${targets[*]}"
    done
}

# Every program with the given backend of portable-atomic, for the targets given after it.
build_programs() {
    local backend=$1
    shift
    build --bins --features "heapless,$backend" "${@/#/--target=}"
}

build() {
    (cd ci/bare-metal && cargo build --quiet --locked --release "${build_std[@]}" --target-dir "$target_dir" "$@")
}

# In a debug build, by the compiler and for the machine that all other checks use.
print_on_host() {
    (
        unset RUSTC RUSTDOC RUSTC_BOOTSTRAP
        cd ci/bare-metal
        cargo run --quiet --locked --features heapless --target-dir "$target_dir/host" --bin decisions
    )
}

# Runs both programs on a target. An exit code other than 0, other output than the host's, or no end is a failure.
run_programs() {
    local target=$1 out=$printed/$1-$2
    emulate "$target" decisions >"$out" || fail "decisions on $target ($2): exit code $?"
    diff "$printed/host" "$out" >"$out.diff" || {
        head -n 40 "$out.diff"
        fail "decisions on $target ($2) differ from this machine's (<)"
    }
    echo "$target, $2: $(wc -l <"$out") lines, as on this machine"
    # One instruction takes 64 ns of the emulated time, so the interrupts come at the same instructions in every run.
    emulate "$target" race -icount shift=6 || fail "race on $target ($2): exit code $?"
}

# Runs the tasks of embassy's executor. What each was granted at which reading is the same on every processor.
run_embassy() {
    local target=$1 out=$printed/$1-embassy
    emulate "$target" embassy -icount shift=6 >"$out" || fail "embassy on $target: exit code $?, after: $(tail -n 1 "$out")"
    if [ "$target" = "${cortex_m[0]}" ]; then cat "$out"; fi
    diff "$printed/${cortex_m[0]}-embassy" "$out" || fail "embassy on $target differs from ${cortex_m[0]} (<)"
    echo "$target: embassy's tasks were granted their tokens in order, at the tick"
}

emulate() {
    local target=$1 program=$2 machine
    shift 2
    case $target in
    thumbv7em-*) machine="qemu-system-arm -machine mps2-an386 -cpu cortex-m4" ;;
    thumbv6m-*) machine="qemu-system-arm -machine microbit" ;;
    riscv32imc-*) machine="qemu-system-riscv32 -machine virt -cpu rv32,a=false,f=false,d=false -bios none" ;;
    esac
    # Some seconds are enough; a program that hangs is ended after a minute, with exit code 124.
    # shellcheck disable=SC2086
    timeout 60 $machine -nographic -monitor none -serial none -semihosting-config enable=on,target=native "$@" \
        -kernel "$target_dir/$target/release/$program" </dev/null
}

# What a limiter adds to a program, in bytes. Nothing is asserted.
report_sizes() {
    local target program base
    printf '\n%-30s %-8s %16s %6s\n' "bytes, single-core backend" adds "flash (text+data)" "RAM"
    for target in "${run[@]}"; do
        base=$(size_of "$target" size-nothing)
        for program in bucket window; do
            # shellcheck disable=SC2046
            printf '%-30s %-8s %17d %6d\n' "$target" "$program" \
                $(paste <(echo "$base") <(size_of "$target" "size-$program") | awk '{ print $3 - $1, $4 - $2 }')
        done
    done
}

# Flash and RAM: what is loaded, and what is written at run time, apart from the stack.
size_of() {
    readelf -SW "$target_dir/$1/release/$2" | sed 's/^ *\[ *\([0-9]*\)\]/\1/' | awk '
        function number(hex,   i, n) { for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1; return n }
        $8 ~ /A/ && $3 == "PROGBITS" { flash += number($6); if ($8 ~ /W/) ram += number($6) }
        $8 ~ /A/ && $3 == "NOBITS" && $2 !~ /stack|heap/ { ram += number($6) }
        END { print flash + 0, ram + 0 }'
}

install_qemu() {
    has_qemu && return
    command -v apt-get >/dev/null && apt_install qemu-system-arm qemu-system-misc && has_qemu
}

has_qemu() {
    qemu-system-arm --version >/dev/null 2>&1 && qemu-system-riscv32 --version >/dev/null 2>&1
}

find_compiler() {
    has_rustup_targets && return
    debian_compiler && return
    command -v rustup >/dev/null && rustup target add "${targets[@]}" >/dev/null 2>&1 && has_rustup_targets
}

has_rustup_targets() {
    local target
    command -v rustup >/dev/null || return 1
    for target in "${targets[@]}"; do
        rustup target list --installed 2>/dev/null | grep -qx "$target" || return 1
    done
}

# Debian's rolling compiler and the source of its library; whatever version it is, the linker is the one of its LLVM.
debian_compiler() {
    local llvm target name
    command -v apt-get >/dev/null || return 1
    if ! dpkg -s rustc-web rust-web-src >/dev/null 2>&1; then
        apt_install rustc-web rust-web-src || return 1
    fi
    RUSTC=$(dpkg -L rustc-web | grep -m1 'bin/rustc$') || return 1
    RUSTDOC=$(dpkg -L rustc-web | grep -m1 'bin/rustdoc$') || return 1
    # The library's source is built with features that only its own compiler may use.
    RUSTC_BOOTSTRAP=1
    export RUSTC RUSTDOC RUSTC_BOOTSTRAP
    llvm=$("$RUSTC" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    command -v "ld.lld-$llvm" >/dev/null || apt_install "lld-$llvm" || return 1
    for target in "${targets[@]}"; do
        name=${target//-/_}
        export "CARGO_TARGET_${name^^}_LINKER=ld.lld-$llvm"
    done
    build_std=(-Zbuild-std=core,alloc)
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

main
