//! Gives the linker the memory layout of the emulated board.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=memory");
    let target = env::var("TARGET").unwrap();
    let layout = match target.as_str() {
        "thumbv7em-none-eabi" | "thumbv7em-none-eabihf" => "mps2-an386.x",
        "thumbv6m-none-eabi" => "microbit.x",
        "riscv32imc-unknown-none-elf" => "virt-rv32.x",
        // The host, which needs none.
        _ => return,
    };
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    std::fs::copy(PathBuf::from("memory").join(layout), out.join("memory.x")).unwrap();
    println!("cargo::rustc-link-search={}", out.display());
    if target.starts_with("riscv32") {
        println!("cargo::rustc-link-arg-bins=-Tmemory.x");
    } else {
        // Sections are not aligned to pages, which would waste flash.
        println!("cargo::rustc-link-arg-bins=--nmagic");
    }
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
}
