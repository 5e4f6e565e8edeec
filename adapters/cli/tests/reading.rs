//! What can be read: formats, packing, standard input, lines that cannot be read, order and zones.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use support::{Place, counts, line, lines};

const TIME: &str = "17/May/2015:10:05:03 +0000";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_known_by_its_content_in_one_member_or_more() {
    let place = Place::new("reading-gzip");
    let text = lines("1.2.3.4", TIME, 12);
    place.write("plain.gz", &text);
    place.write("packed.log", gzip(text.as_bytes()));
    place.write("members.gz", [gzip(text.as_bytes()), gzip(b""), gzip(lines("::1", TIME, 3).as_bytes())].concat());
    assert_eq!(counts(&place.json(&["plain.gz"])), [12, 10, 2]);
    assert_eq!(counts(&place.json(&["packed.log"])), [12, 10, 2]);
    assert_eq!(counts(&place.json(&["members.gz"])), [15, 13, 2]);
    let packed = gzip(text.as_bytes());
    assert_eq!(counts(&place.replay_input(&["-", "--json"], &packed).json()), [12, 10, 2]);

    // Tapes and block devices pad with zeros, which gunzip too passes over; anything else is not.
    place.write("padded.gz", [&packed[..], &[0; 70_000]].concat());
    assert_eq!(counts(&place.json(&["padded.gz"])), [12, 10, 2]);
    place.write("trailing.gz", [&packed[..], b"and then?"].concat());
    let ran = place.replay(&["trailing.gz"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("what follows the gzip data is no gzip data"), "{ran:?}");

    place.write("cut.gz", &packed[..packed.len() - 9]);
    let ran = place.replay(&["cut.gz"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.err.contains("cannot read cut.gz"), "{ran:?}");
}

#[test]
fn standard_input_and_files_are_one_log() {
    let place = Place::new("reading-stdin");
    place.write("a.log", lines("1.2.3.4", TIME, 6));
    let input = lines("1.2.3.4", TIME, 6);
    for mode in [&["a.log", "-", "--json"][..], &["-", "a.log", "--json", "--stream"]] {
        assert_eq!(counts(&place.replay_input(mode, input.as_bytes()).json()), [12, 10, 2]);
    }
    assert_eq!(counts(&place.replay_input(&["-", "--json"], b"").json()), [0, 0, 0]);
    let without_end = input.trim_end();
    assert_eq!(counts(&place.replay_input(&["-", "--json"], without_end.as_bytes()).json()), [6, 6, 0]);
    let windows = format!("\u{feff}{}", input.replace('\n', "\r\n"));
    assert_eq!(counts(&place.replay_input(&["-", "--json", "--strict"], windows.as_bytes()).json()), [6, 6, 0]);
}

#[test]
fn every_format_finds_the_same_requests() {
    let place = Place::new("reading-formats");
    let rest = r#""POST /a/b?c=d HTTP/1.1" 201 77"#;
    let common = line("1.2.3.4", TIME, rest);
    place.write("common", common.repeat(12));
    place.write("combined", line("1.2.3.4", TIME, &format!("{rest} \"-\" \"Agent\"")).repeat(12));
    let object = json!({
        "time": "2015-05-17T12:05:03+02:00", "remote_addr": "1.2.3.4", "request": "POST /a/b?c=d HTTP/1.1",
        "status": 201, "body_bytes_sent": "77", "nested": {"ip": "9.9.9.9"},
    });
    place.write("json", format!("{object}\n").repeat(12));
    for (name, format) in [
        ("common", "common"),
        ("common", "auto"),
        ("combined", "combined"),
        ("combined", "common"),
        ("combined", "auto"),
        ("json", "json-lines"),
        ("json", "auto"),
    ] {
        for (by, key) in [("ip", "1.2.3.4"), ("path", "/a/b"), ("method", "POST"), ("status", "201"), ("all", "all")] {
            let report = place.json(&[name, "--format", format, "--by", by]);
            assert_eq!(counts(&report), [12, 10, 2], "{name} {format} {by}");
            assert_eq!((&report["top_denied"][0]["key"], &report["by"]), (&key.into(), &by.into()));
            assert_eq!(report["from"], "2015-05-17T10:05:03Z");
        }
        let report = place.json(&[name, "--format", format, "--cost", "bytes", "--limit", "200/1m"]);
        assert_eq!(counts(&report), [12, 2, 10], "{name} {format}: 2 * 77 <= 200");
    }
    let report = place.json(&["common", "--format", "combined"]);
    assert_eq!((&report["unparsed"], &report["from"], &report["to"]), (&12.into(), &json!(null), &json!(null)));
    // Each file is detected by itself.
    assert_eq!(counts(&place.json(&["common", "json", "combined"])), [36, 10, 26]);
}

#[test]
fn a_pattern_reads_any_log() {
    let place = Place::new("reading-pattern");
    let pattern = r"^(?P<time>\S+) user=(?<key>\w+)( took (?<cost>[-\d]+))?";
    let log = "2015-05-17T10:05:03.5Z user=eve took 3\n2015-05-17T10:05:03.5Z user=eve took -\nnothing here\n\
               1431857104 user=eve\n1431857104500 user=eve took 8\n";
    place.write("a.log", log);
    let report = place.json(&["a.log", "--pattern", pattern]);
    assert_eq!(counts(&report), [4, 3, 1], "3 + 0 + 0, then 8 is too much");
    assert_eq!((&report["unparsed"], &report["by"]), (&1.into(), &"key".into()));
    let expected = json!([{
        "key": "eve", "requests": 4, "denied": 1, "first_denied_at": "2015-05-17T10:05:04.5Z",
    }]);
    assert_eq!(report["top_denied"], expected);
    let report = place.json(&["a.log", "--format", "regex", "--pattern", pattern, "--cost", "1", "--limit", "2/1m"]);
    assert_eq!(counts(&report), [4, 2, 2]);
    let report = place.json(&["a.log", "--pattern", pattern, "--by", "all"]);
    assert_eq!((&report["by"], &report["top_denied"][0]["key"]), (&"all".into(), &"all".into()));

    place.write("b.log", "29.02.2024 13:00:00 +0100 a\n30.02.2024 13:00:00 +0100 a\n");
    let pattern = r"^(?<time>\S+ \S+ \S+) (?<key>.)";
    let report = place.json(&["b.log", "--pattern", pattern, "--time-format", "%d.%m.%Y %H:%M:%S %z"]);
    assert_eq!((&report["from"], &report["unparsed"]), (&"2024-02-29T12:00:00Z".into(), &1.into()));
}

#[test]
fn unreadable_lines_are_counted_and_the_first_few_named() {
    let place = Place::new("reading-unreadable");
    let good = lines("1.2.3.4", TIME, 1);
    place.write("a.log", format!("{good}\n  \nbad 1\n{good}bad \x1b[2J\nbad 3\nbad 4\nbad 5\n{good}"));
    let ran = place.replay(&["a.log", "--json"]);
    let report = ran.json();
    assert_eq!((&report["requests"], &report["unparsed"]), (&3.into(), &5.into()), "empty lines are nothing");
    let named: Vec<_> = ran.err.lines().collect();
    assert_eq!(named.len(), 4, "{ran:?}");
    for (text, number) in named.iter().zip([4, 6, 7]) {
        assert!(text.starts_with(&format!("warning: a.log:{number}: not a common log line")), "{text}");
    }
    assert_eq!(named[3], "warning: 2 more lines could not be read");

    let ran = place.replay(&["a.log", "--strict"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.err.starts_with("error: a.log:4: not a common log line"), "{ran:?}");
    place.write("b.log", good);
    assert_eq!(place.replay(&["b.log", "--strict"]).code, Some(0));
}

#[test]
fn bytes_that_are_no_text_and_endless_lines_harm_nothing() {
    let place = Place::new("reading-bytes");
    let mut log = vec![];
    for _ in 0..12 {
        log.extend(b"1.2.3.\xff - - [17/May/2015:10:05:03 +0000] \"GET /\xfe\x00 HTTP/1.1\" 200 10\n");
    }
    log.extend(vec![b'x'; 5 << 20]);
    log.extend(b"\n");
    log.extend(lines("ok", TIME, 1).as_bytes());
    // Lines that would take a careless search as many steps as their length squared.
    log.extend(["[".repeat(1 << 20), "\n".to_owned(), "a [\"".repeat(1 << 18)].concat().as_bytes());
    place.write("a.log", log);
    let ran = place.replay(&["a.log", "--json"]);
    let report = ran.json();
    assert_eq!((counts(&report), &report["unparsed"]), ([13, 11, 2], &3.into()));
    assert_eq!(report["top_denied"][0]["key"], "1.2.3.\u{fffd}");
    assert!(ran.err.contains("warning: a.log:13: longer than 1048576 bytes"), "{}", ran.err);
    let pattern = r"^(?<key>\S+) - - \[(?<time>.+?)\]";
    let report = place.json(&["a.log", "--pattern", pattern]);
    assert_eq!(counts(&report), [13, 11, 2]);
}

#[test]
fn lines_are_put_in_the_order_of_their_times_and_equal_times_stay() {
    let place = Place::new("reading-order");
    let at = |second: u32| format!("17/May/2015:10:05:{second:02} +0000");
    // Two seconds of cost 10; the order among equal times decides which path is refused.
    let request = |second, path: &str, bytes| line("h", &at(second), &format!("\"GET {path} HTTP/1.1\" 200 {bytes}"));
    place.write("1", [request(40, "/late", 1), request(3, "/first", 6), request(3, "/second", 6)].concat());
    place.write("2", [request(3, "/third", 4), request(2, "/zero", 0), request(41, "/later", 1)].concat());
    let report = |order: &[&str]| {
        let mut arguments = order.to_vec();
        arguments.extend(["--cost", "bytes", "--limit", "10/1h", "--by", "all"]);
        place.json(&arguments)
    };
    let sorted = report(&["1", "2"]);
    // zero 0, first 6, second 6 refused, third 4, then late and later 1 each refused.
    assert_eq!((counts(&sorted), &sorted["out_of_order"]), ([6, 3, 3], &4.into()));
    assert_eq!(sorted["top_denied"][0]["first_denied_at"], "2015-05-17T10:05:03Z");
    // The other order: zero, third 4, first 6, the rest refused: 3 again, but only one line was late in the second file.
    let other = report(&["2", "1"]);
    assert_eq!((counts(&other), &other["out_of_order"]), ([6, 3, 3], &4.into()));
    // As they come: late 1, first and second at 10:05:03 under a state from 10:05:40.
    let stream = report(&["1", "2", "--stream"]);
    assert_eq!((counts(&stream), &stream["out_of_order"]), ([6, 4, 2], &4.into()));
    // Many equal times, more than an unstable sort keeps by luck: the first ten of each second are admitted, in order.
    let mut log = String::new();
    for number in 0..2_000 {
        let method = if number < 1_000 { "GET" } else { "PUT" };
        log.push_str(&line("h", &at(5 - number % 5), &format!("\"{method} / HTTP/1.1\" 200 {}", number + 1)));
    }
    place.write("3", log);
    // 1, 6, 11, ... of each second: only its smallest costs, which came first, fit.
    let many = place.json(&["3", "--cost", "bytes", "--limit", "100/1s", "--algorithm", "fixed-window", "--by", "all"]);
    let expected: u64 = (0..5_u64)
        .map(|first| {
            let mut left = 100_u64;
            (0..400).filter(|step| left.checked_sub(first + 1 + step * 5).map(|rest| left = rest).is_some()).count()
                as u64
        })
        .sum();
    assert_eq!(counts(&many)[1], expected);
}

#[test]
fn zones_are_honoured_and_windows_are_aligned_to_the_epoch() {
    let place = Place::new("reading-zones");
    place.write(
        "a.log",
        [
            lines("h", "17/May/2015:12:05:59 +0200", 3),
            lines("h", "17/May/2015:10:06:00 +0000", 3),
            lines("h", "17/May/2015:06:06:59 -0400", 3),
            lines("h", "17/May/2015:15:37:00 +0530", 3),
        ]
        .concat(),
    );
    let windows = |limit: &str| counts(&place.json(&["a.log", "--limit", limit, "--algorithm", "fixed-window"]));
    assert_eq!(windows("3/1m"), [12, 9, 3], "three windows of a minute: 10:05, 10:06, 10:07");
    assert_eq!(windows("3/7m"), [12, 3, 9], "10:03 to 10:10 is one window of seven minutes since 1970");
    assert_eq!(windows("4/61s"), [12, 8, 4], "10:05:34 to 10:06:35 is one since 1970");
    assert_eq!(windows("3/1d"), [12, 3, 9]);
    let report = place.json(&["a.log"]);
    assert_eq!((&report["from"], &report["to"]), (&"2015-05-17T10:05:59Z".into(), &"2015-05-17T10:07:00Z".into()));
    assert_eq!(report["out_of_order"], 0);

    // Before 1970 windows begin as they do after it.
    place.write(
        "b.log",
        [lines("h", "31/Dec/1969:23:59:59 +0000", 2), lines("h", "01/Jan/1970:00:00:00 +0000", 2)].concat(),
    );
    let report = place.json(&["b.log", "--limit", "1/1h", "--algorithm", "fixed-window"]);
    assert_eq!((counts(&report), &report["from"]), ([4, 2, 2], &"1969-12-31T23:59:59Z".into()));
}

#[test]
fn nanoseconds_count() {
    let place = Place::new("reading-nanoseconds");
    let at = |nanos: &str| format!("{{\"ts\":1431857103.{nanos},\"ip\":\"h\"}}\n");
    place.write("a.log", [at("0"), at("000001499"), at("0000015"), at("000002999"), at("000003")].concat());
    let report = place.json(&["a.log", "--limit", "2/3us burst 1"]);
    assert_eq!((counts(&report), &report["to"]), ([5, 3, 2], &"2015-05-17T10:05:03.000003Z".into()));
    assert_eq!(report["top_denied"][0]["first_denied_at"], "2015-05-17T10:05:03.000001499Z");
}

#[test]
fn huge_costs_are_refused_and_nothing_wraps() {
    let place = Place::new("reading-costs");
    let sized = |bytes: &str| line("h", TIME, &format!("\"GET / HTTP/1.1\" 200 {bytes}"));
    let log = ["-", "18446744073709551615", "99999999999999999999999", "4294967296", "2147483648", "0"].map(sized);
    place.write("a.log", log.concat());
    for (limit, expected) in [("5000000000/1h", [6, 3, 3]), ("7000000000/1h", [6, 4, 2]), ("10/1m", [6, 2, 4])] {
        for algorithm in ["token-bucket", "fixed-window"] {
            for stream in [None, Some("--stream")] {
                let mut arguments = vec!["a.log", "--cost", "bytes", "--limit", limit, "--algorithm", algorithm];
                arguments.extend(stream);
                assert_eq!(counts(&place.json(&arguments)), expected, "{arguments:?}");
            }
        }
    }
}

#[test]
fn windows_of_a_nanosecond_are_followed_over_centuries() {
    let place = Place::new("reading-nanosecond");
    place.write(
        "a.jsonl",
        "{\"time\":\"1800-01-01T00:00:00Z\",\"ip\":\"a\"}\n{\"time\":\"2100-01-01T00:00:00Z\",\"ip\":\"a\"}\n",
    );
    let report = place.json(&["a.jsonl", "--algorithm", "fixed-window", "--limit", "1/1ns"]);
    assert_eq!((&report["admitted"], &report["denied"]), (&2.into(), &0.into()));
}

#[test]
fn a_window_may_have_a_limit_that_no_bucket_could_keep() {
    let place = Place::new("reading-large-window");
    place.write("a.log", "198.51.100.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 9999999999\n".repeat(2));
    let arguments = ["a.log", "--cost", "bytes", "--limit", "10000000000/1s"];
    assert_eq!(place.replay(&arguments).code, Some(2));
    let report = place.json(&[&arguments[..], &["--algorithm", "fixed-window"]].concat());
    assert_eq!((&report["admitted"], &report["denied"]), (&1.into(), &1.into()));
    assert_eq!(report["limit"], "10000000000/1s");
}

#[test]
fn a_zone_that_is_only_named_makes_a_line_unreadable() {
    let place = Place::new("reading-zone");
    place.write("a.jsonl", "{\"time\":\"2024-07-01T12:00:00[Asia/Tokyo]\",\"ip\":\"a\"}\n");
    let report = place.json(&["a.jsonl", "--format", "json-lines"]);
    assert_eq!((&report["requests"], &report["unparsed"]), (&0.into(), &1.into()));
}
