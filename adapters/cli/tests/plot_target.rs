//! Where a plot goes, and what it must leave alone.
#![cfg(unix)]
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use support::{Place, Ran};

const LOG: &str = "198.51.100.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5\n";

fn place(name: &str) -> Place {
    let place = Place::new(name);
    place.write("a.log", LOG);
    place
}

#[test]
fn the_file_that_the_report_goes_to_is_refused() {
    let place = place("plot-stdout");
    for target in ["out.svg", "/dev/stdout"] {
        let out = File::create(place.path().join("out.svg")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
        command.args(["replay", "a.log", "--plot", target]).current_dir(place.path()).stdout(out);
        let ran = Ran::new(command.output().unwrap());
        assert_eq!(ran.code, Some(2), "{target}: {ran:?}");
        assert!(ran.err.contains("the report is printed to this file"), "{target}: {ran:?}");
        assert_eq!(fs::read(place.path().join("out.svg")).unwrap(), b"");
    }
}

#[test]
fn a_link_stays_a_link_also_where_it_leads_nowhere_yet() {
    let place = place("plot-link");
    let at = |name: &str| place.path().join(name);
    symlink("second.svg", at("first.svg")).unwrap();
    symlink("real.svg", at("second.svg")).unwrap();
    for _ in 0..2 {
        assert_eq!(place.replay(&["a.log", "--plot", "first.svg"]).code, Some(0));
        for link in ["first.svg", "second.svg"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        }
        assert!(fs::read_to_string(at("real.svg")).unwrap().starts_with("<svg"));
    }
    assert_eq!(place.names(), ["a.log", "first.svg", "real.svg", "second.svg"]);
}

#[test]
fn what_is_replaced_keeps_its_mode_and_a_long_name_is_no_obstacle() {
    let place = place("plot-mode");
    let name = "x".repeat(251) + ".svg";
    place.write(&name, "before");
    let path = place.path().join(&name);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.replay(&["a.log", "--plot", &name]).code, Some(0));
    assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
