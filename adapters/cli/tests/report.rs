//! What is printed: for people, for programs, and as a picture.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Place, line, lines};

fn example() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/access.log").to_str().unwrap().to_owned()
}

#[test]
fn json_has_exactly_the_fields_it_promises() {
    let place = Place::new("report-json");
    let report = place.json(&[&example(), "--top", "1"]);
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut expected = vec![
        "requests",
        "admitted",
        "denied",
        "keys",
        "denied_keys",
        "unparsed",
        "out_of_order",
        "from",
        "to",
        "limit",
        "algorithm",
        "by",
        "top_denied",
    ];
    expected.sort_unstable();
    assert_eq!(names(&report), expected);
    assert_eq!(names(&report["top_denied"][0]), ["denied", "first_denied_at", "key", "requests"]);
    assert_eq!(report["top_denied"].as_array().unwrap().len(), 1);

    let ran = place.replay(&["-", "--json", "--limit", "600/120s", "--algorithm", "fixed-window", "--by", "path"]);
    let expected = json!({
        "requests": 0, "admitted": 0, "denied": 0, "keys": 0, "denied_keys": 0, "unparsed": 0, "out_of_order": 0,
        "from": null, "to": null, "limit": "600/2m", "algorithm": "fixed-window", "by": "path", "top_denied": [],
    });
    assert_eq!((ran.json(), ran.err.as_str()), (expected, ""));
}

#[test]
fn equally_refused_keys_are_listed_by_name() {
    let place = Place::new("report-ties");
    let time = "17/May/2015:10:05:03 +0000";
    place.write(
        "a.log",
        [lines("c", time, 13), lines("b", time, 12), lines("a", time, 12), lines("d", time, 10)].concat(),
    );
    let report = place.json(&["a.log"]);
    let keys: Vec<_> = report["top_denied"].as_array().unwrap().iter().map(|top| &top["key"]).collect();
    assert_eq!(keys, ["c", "a", "b"]);
    assert_eq!(place.json(&["a.log", "--top", "0"])["top_denied"], json!([]));
}

#[test]
fn the_table_tells_what_happened() {
    let place = Place::new("report-table");
    let ran = place.replay(&[&example(), "--limit", "10/1m", "--by", "ip"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for part in [
        "10/1m (token-bucket) by ip",
        "requests",
        "admitted",
        "denied",
        "keys ever denied",
        "lines out of order",
        "Most refused",
        "first denied (UTC)",
        "203.0.113.66",
        "Over time (UTC)",
        "█",
        "░",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let ran = place.replay(&["-"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("requests"), "{}", ran.out);
}

#[test]
fn a_key_cannot_rewrite_the_report() {
    let place = Place::new("report-escape");
    let key = "\\u001b[2J\\u202eevil\\nrow";
    let object = format!("{{\"time\":1431857103,\"ip\":\"{key}\"}}\n");
    place.write("a.log", object.repeat(12));
    let ran = place.replay(&["a.log"]);
    assert!(ran.out.contains("\\u{1b}[2J\\u{202e}evil\\nrow"), "{}", ran.out);
    assert!(!ran.out.contains(['\x1b', '\u{202e}']), "{}", ran.out);
    assert_eq!(place.json(&["a.log"])["top_denied"][0]["key"], "\x1b[2J\u{202e}evil\nrow");
    let name = "a\x1bb.log";
    place.write(name, "nothing\n");
    assert!(place.replay(&[name]).err.contains("warning: a\\u{1b}b.log:1:"));
}

#[test]
fn the_plot_is_a_well_formed_picture_and_takes_its_place_at_once() {
    let place = Place::new("report-plot");
    let time = "17/May/2015:10:05:03 +0000";
    place.write("one.log", lines("h", time, 12));
    place.write("none.log", "");
    place.write(
        "years.log",
        [lines("h", time, 12), line("h", "01/Jan/1970:00:00:00 +0000", "\"GET / HTTP/1.1\" 200 1")].concat(),
    );
    place.write("out.svg", "what was there before");
    for log in [example().as_str(), "one.log", "none.log", "years.log"] {
        for by in ["ip", "path"] {
            let ran = place.replay(&[log, "--plot", "out.svg", "--by", by, "--json"]);
            ran.json();
            let text = fs::read_to_string(place.path().join("out.svg")).unwrap();
            let document = roxmltree::Document::parse(&text).unwrap();
            assert_eq!(document.root_element().tag_name().name(), "svg");
            let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
            for part in ["admitted", "denied", "time (UTC)", "requests per", &format!("10/1m (token-bucket) by {by}")] {
                assert!(texts.iter().any(|text| text.contains(part)), "{log} {part}: {texts:?}");
            }
            let bars = document.descendants().filter(|node| node.attribute("fill") == Some("#D55E00")).count();
            assert_eq!(bars > 1, log != "none.log", "{log}: refusals are drawn, beside their mark in the legend");
        }
    }
    assert_eq!(place.names(), ["none.log", "one.log", "out.svg", "years.log"]);
    // A run that fails leaves what was there.
    place.write("out.svg", "what was there before");
    place.write("bad.log", "bad\n");
    assert_eq!(place.replay(&["bad.log", "--strict", "--plot", "out.svg"]).code, Some(2));
    assert_eq!(fs::read_to_string(place.path().join("out.svg")).unwrap(), "what was there before");
}
