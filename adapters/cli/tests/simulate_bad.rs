//! Scenarios that cannot be run: each is refused with its file, the line and the reason.
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use support::Place;

/// Line numbers are what the table below goes by.
const GOOD: &str = r#"title = "Good"
text = "Nothing happens."
duration = "10s"
seed = 7
[[load]]
from = "0s"
rate = "10/1s"
cost = 2
[[load]]
from = "5s"
rate = "20/1s"
[[service]]
from = "0s"
latency = "10ms"
capacity = 5
[flow]
quota = "100/1s burst 50"
timeout = "1s"
in_flight = 20
[flow.breaker]
window = "10s"
cool_down = "5s"
failure_share = 50
[flow.adaptive]
every = "1s"
floor = 1
errors = { cool_down = "5s" }
load = { high = 80, low = 50 }
"#;

/// What is put in place of which line, and what is said of which line and column.
const BAD: &[(&str, &str, &str, &str)] = &[
    // Syntax.
    (r#"title = "Good""#, "title = Good", "1:9", "string values must be quoted"),
    ("seed = 7", "seed = 7\nseed = 8", "5:1", "duplicate key"),
    ("seed = 7", "sed = 7", "4:1", "unknown field `sed`, expected one of `title`"),
    (r#"latency = "10ms""#, "", "12:1", "missing field `latency`"),
    ("floor = 1", "flor = 1", "26:1", "unknown field `flor`"),
    // Single values.
    (r#"duration = "10s""#, r#"duration = "0s""#, "3:12", "\"0s\" is no time at all"),
    (r#"duration = "10s""#, r#"duration = "10""#, "3:12", "\"10\" is no duration"),
    (r#"duration = "10s""#, r#"duration = "-1s""#, "3:12", "\"-1s\" is no duration"),
    (
        r#"duration = "10s""#,
        r#"duration = "31y""#,
        "3:12",
        "no duration: write a whole number and one of ns us ms s m h d",
    ),
    (r#"duration = "10s""#, r#"duration = "11000d""#, "3:12", "longer than 30 years"),
    (r#"duration = "10s""#, "duration = 10", "3:12", "expected a duration such as \"250ms\""),
    ("seed = 7", "seed = -7", "4:8", "expected a whole number from 0 to 9223372036854775807"),
    (
        r#"rate = "20/1s""#,
        "rate = 20",
        "11:8",
        "invalid type: integer `20`, expected requests per period, such as \"80/1s\", or \"none\"",
    ),
    (r#"rate = "20/1s""#, "rate = 0.5", "11:8", "invalid type: floating point `0.5`, expected requests per period"),
    (r#"rate = "20/1s""#, "rate = nan", "11:8", "floating point `NaN`, expected requests per period"),
    (
        r#"rate = "20/1s""#,
        "rate = \"20\"",
        "11:8",
        "a number alone has no period; write tokens per period, as in 300/1m, or \"none\"",
    ),
    (r#"rate = "20/1s""#, "rate = \"0/1s\"", "11:8", "\"0/1s\": write \"none\" where no requests arrive"),
    (r#"rate = "20/1s""#, "rate = \"-5/1s\"", "11:8", "\"-5/1s\": the tokens are not a whole number"),
    (r#"rate = "20/1s""#, "rate = \"0.5/1s\"", "11:8", "\"0.5/1s\": the tokens are not a whole number"),
    (r#"rate = "20/1s""#, "rate = \"nan/1s\"", "11:8", "\"nan/1s\": the tokens are not a whole number"),
    (r#"rate = "20/1s""#, "rate = \"off\"", "11:8", "\"off\": the tokens are not a whole number"),
    (r#"rate = "20/1s""#, "rate = \"20/1s burst 5\"", "11:8", "something follows"),
    (r#"rate = "20/1s""#, "rate = \"1000000001/1s\"", "11:8", "\"1000000001/1s\" is more than 1000000000/1s"),
    (r#"rate = "20/1s""#, "rate = \"1/11000d\"", "11:8", "\"1/11000d\": its period is longer than 30 years"),
    (
        r#"rate = "20/1s""#,
        "rate = \"1/99999999999999999999d\"",
        "11:8",
        "the number in the period is not a whole number",
    ),
    (
        r#"rate = "20/1s""#,
        "rate = \"20/1s\"\nto_rate = 30",
        "12:11",
        "invalid type: integer `30`, expected requests per period",
    ),
    (
        r#"rate = "20/1s""#,
        "rate = \"20/1s\"\narrivals = \"odd\"",
        "12:12",
        "unknown variant `odd`, expected `even` or `random`",
    ),
    ("cost = 2", "cost = 0", "8:8", "expected a whole number from 1 to 4294967295"),
    ("capacity = 5", "capacity = 0", "15:12", "expected a whole number from 1 to 400000"),
    ("capacity = 5", "capacity = 1.5", "15:12", "expected a whole number from 1 to 400000"),
    ("capacity = 5", "capacity = 5\nfailures = 101", "16:12", "expected a percentage, a number from 0 to 100"),
    ("capacity = 5", "capacity = 5\noverloaded = nan", "16:14", "expected a percentage"),
    ("capacity = 5", "capacity = 5\nprovider = \"50 per second\"", "16:12", "no `/` between tokens and period"),
    (r#"quota = "100/1s burst 50""#, "quota = \"100/0s\"", "17:9", "a period of 0: the least is 1ns"),
    (r#"quota = "100/1s burst 50""#, "quota = \"0/1s\"", "17:9", "0 tokens per period: the least is 1"),
    (r#"timeout = "1s""#, "timeout = \"0ms\"", "18:11", "no time at all"),
    ("in_flight = 20", "in_flight = 0", "19:13", "expected a whole number from 1 to 400000, or a table with a law"),
    (
        "in_flight = 20",
        "in_flight = { law = \"vegas\" }",
        "19:21",
        "unknown variant `vegas`, expected `aimd` or `gradient`",
    ),
    ("in_flight = 20", "in_flight = { law = \"aimd\", max = 5 }", "19:29", "unknown field `max`"),
    ("floor = 1", "floor = 0", "26:9", "expected a percentage above 0 and up to 100"),
    ("failure_share = 50", "failure_share = \"no\"", "23:17", "or \"none\""),
    ("in_flight = 20", "when_empty = \"wait\"", "19:14", "expected one of `reject`, `queue`, `degrade`"),
    ("in_flight = 20", "when_empty = \"queue\"\nlongest_wait = \"0s\"", "20:16", "\"0s\" is no time at all"),
    (
        "in_flight = 20",
        "when_empty = \"queue\"\nmost_waiting = -1",
        "20:16",
        "expected a whole number from 0 to 100000",
    ),
    ("capacity = 5", "capacity = 5\nprovider = 50", "16:12", "integer `50`, expected a limit such as"),
    ("capacity = 5", "capacity = 5\nprovider_quota = 500000", "16:18", "integer `500000`, expected tokens per period"),
    ("capacity = 5", "capacity = 5\nprovider_quota = \"off\"", "16:18", "\"off\": the tokens are not a whole number"),
    (
        "floor = 1",
        "floor = 1\npace = 1000",
        "27:8",
        "expected tokens per period, such as \"1000000/24h\", or \"provider\"",
    ),
    ("floor = 1", "floor = 1\npace = \"answers\"", "27:8", "or \"provider\""),
    // What is missing.
    (r#"title = "Good""#, "", "1:1", "missing field `title`"),
    (r#"duration = "10s""#, "", "1:1", "missing field `duration`"),
    ("[[service]]\nfrom = \"0s\"\nlatency = \"10ms\"\ncapacity = 5\n", "", "1:1", "missing field `service`"),
    ("rate = \"20/1s\"", "", "9:1", "missing field `rate`"),
    // What is no number, or none that can be.
    (
        r#"duration = "10s""#,
        "duration = \"99999999999999999999d\"",
        "3:12",
        "\"99999999999999999999d\" is longer than 30 years",
    ),
    (r#"duration = "10s""#, "duration = \"300000000000d\"", "3:12", "\"300000000000d\" is longer than 30 years"),
    (r#"duration = "10s""#, "duration = \"1.5s\"", "3:12", "\"1.5s\" is no duration"),
    (r#"duration = "10s""#, "duration = nan", "3:12", "floating point `NaN`, expected a duration"),
    (r#"duration = "10s""#, "duration = [\"10s\"]", "3:12", "expected a duration such as"),
    ("seed = 7", "seed = 9223372036854775808", "4:8", "expected a whole number from 0 to 9223372036854775807"),
    ("seed = 7", "seed = 1e3", "4:8", "expected a whole number"),
    ("cost = 2", "cost = -2", "8:8", "integer `-2`, expected a whole number from 1 to 4294967295"),
    ("cost = 2", "cost = 4294967296", "8:8", "expected a whole number from 1 to 4294967295"),
    ("capacity = 5", "capacity = 400001", "15:12", "expected a whole number from 1 to 400000"),
    ("capacity = 5", "capacity = 5\nqueue = -1", "16:9", "expected a whole number from 0 to 400000"),
    ("capacity = 5", "capacity = 5\njitter = \"-1ms\"", "16:10", "\"-1ms\" is no duration"),
    ("capacity = 5", "capacity = 5\nfailures = -1", "16:12", "integer `-1`, expected a percentage"),
    ("capacity = 5", "capacity = 5\nfailures = 1e300", "16:12", "expected a percentage, a number from 0 to 100"),
    (r#"quota = "100/1s burst 50""#, "quota = 100", "17:9", "integer `100`, expected a limit such as"),
    (r#"quota = "100/1s burst 50""#, "quota = \"100\"", "17:9", "a number alone has no period"),
    (r#"quota = "100/1s burst 50""#, "quota = \"18446744073709551615/1ns\"", "17:9", "18446744073709551615"),
    (
        r#"quota = "100/1s burst 50""#,
        "quota = \"100/1s burst 99999999999999999999\"",
        "17:9",
        "the burst is not a whole number",
    ),
    ("in_flight = 20", "in_flight = -1", "19:13", "integer `-1`, expected a whole number from 1 to 400000"),
    ("in_flight = 20", "in_flight = 4294967297", "19:13", "expected a whole number from 1 to 400000"),
    ("in_flight = 20", "in_flight = nan", "19:13", "floating point `NaN`, expected a whole number from 1 to 400000"),
    ("failure_share = 50", "failure_share = nan", "23:17", "expected a percentage above 0 and up to 100"),
    // What would never end.
    (
        r#"duration = "10s""#,
        "duration = \"10000d\"",
        "11:8",
        "with this there are more than 50000000 arrivals: simulate less time",
    ),
    // What does not go together.
    ("floor = 1", "floor = 1\npace = \"provider\"", "27:8", "no [[service]] has a provider_quota"),
    ("in_flight = 20", "longest_wait = \"1s\"", "19:16", "nobody waits unless when_empty is \"queue\""),
    ("in_flight = 20", "when_empty = \"degrade\"\nmost_waiting = 5", "20:16", "nobody waits unless when_empty"),
    ("from = \"5s\"", "from = \"0s\"", "10:8", "does not begin after the one before it"),
    ("from = \"5s\"", "from = \"10s\"", "10:8", "begins when the scenario is over"),
    ("from = \"0s\"\nlatency", "from = \"1s\"\nlatency", "13:8", "the first [[service]] has to be from 0s on"),
    ("cost = 2", "cost = 51", "8:8", "a cost of 51 is above the burst of the quota, 50"),
    (r#"rate = "20/1s""#, "rate = \"10000001/1s\"", "11:8", "more than 50000000 arrivals"),
    ("rate = \"10/1s\"\n", "rate = \"10/1s\"\nto_rate = \"1000000000/1s\"\n", "7:8", "more than 50000000 arrivals"),
    ("capacity = 5", "queue = 5", "15:9", "a queue without a capacity"),
    (
        "in_flight = 20",
        "in_flight = { law = \"aimd\", least = 5, initial = 4 }",
        "19:13",
        "limits of 5 at least, 4 at first",
    ),
    ("window = \"10s\"", "window = \"15ns\"", "21:10", "it has to be 16 ns to 30 years"),
    ("cool_down = \"5s\"\nf", "cool_down = \"2m\"\nf", "22:13", "the first has to be above 0 s, and no longer"),
    ("failure_share = 50", "failure_share = \"none\"", "23:17", "nothing trips it"),
    (r#"quota = "100/1s burst 50""#, "quota = \"off\"", "24:1", "what adapts is the quota, and [flow] has none"),
    ("every = \"1s\"", "every = \"1ns\"", "25:9", "more than 10000000 evaluations"),
    ("capacity = 5\n", "", "27:8", "give every [[service]] a capacity"),
    ("high = 80, low = 50", "high = 40", "28:17", "high has to be above low"),
    ("high = 80, low = 50", "most_cut = 10", "28:21", "least_cut has to be no more than most_cut"),
    (
        "errors = { cool_down = \"5s\" }\nload = { high = 80, low = 50 }\n",
        "",
        "24:1",
        "give at least one of load, errors and pace",
    ),
    (r#"title = "Good""#, "title = \"\"", "1:9", "an empty title"),
    (r#"title = "Good""#, "title = \"Be\\u0007ep\"", "1:9", "control characters"),
];

#[test]
fn a_bad_scenario_is_refused_with_file_line_and_reason() {
    let place = Place::new("simulate-bad");
    place.write("good.toml", GOOD);
    let good = place.run("simulate", &["good.toml"], b"");
    assert_eq!(good.code, Some(0), "{good:?}");

    let mut wrong = Vec::new();
    for (line, instead, position, reason) in BAD {
        assert_eq!(GOOD.matches(line).count(), 1, "{line:?} is to be found once");
        place.write("bad.toml", GOOD.replacen(line, instead, 1));
        let ran = place.run("simulate", &["bad.toml", "--plot", "out.svg"], b"");
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{instead}: {ran:?}");
        let message = ran.err.trim_end();
        let is_there = message.starts_with(&format!("error: bad.toml:{position}: "));
        if !is_there || !message.contains(reason) || message.contains('\n') {
            wrong.push(format!("{instead}: {message}"));
        }
        assert_eq!(place.names(), ["bad.toml", "good.toml"], "{instead}: nothing is drawn");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_no_text_or_too_long_is_refused() {
    let place = Place::new("simulate-bytes");
    place.write("latin.toml", b"title = \"a\"\ntext = \"\xe4\"\n");
    let ran = place.run("simulate", &["latin.toml"], b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), "error: latin.toml:2:9: these bytes are not UTF-8\n"));
    place.write("long.toml", vec![b'#'; 2 << 20]);
    let ran = place.run("simulate", &["long.toml"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("larger than 1 MiB"), "{ran:?}");
    let ran = place.run("simulate", &["absent.toml"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("cannot read absent.toml"), "{ran:?}");
}

#[test]
fn an_empty_scenario_is_refused() {
    let place = Place::new("simulate-empty");
    for text in ["", "\n\n", "# nothing\n"] {
        place.write("empty.toml", text);
        let ran = place.run("simulate", &["empty.toml"], b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(2), "error: empty.toml:1:1: missing field `title`\n"));
    }
}

#[test]
fn more_phases_than_a_plan_holds_are_refused() {
    let place = Place::new("simulate-phases");
    let loads: String = (0..1_001).map(|second| format!("[[load]]\nfrom = \"{second}s\"\nrate = \"1/1s\"\n")).collect();
    let text = format!("title = \"a\"\nduration = \"1h\"\n{loads}[[service]]\nfrom = \"0s\"\nlatency = \"0s\"\n");
    let ran = place.run("simulate", &["-"], text.as_bytes());
    assert!(ran.code == Some(2) && ran.err.contains(": more than 1000 of [[load]]"), "{ran:?}");
}

#[test]
fn a_scenario_from_standard_input_is_named_so() {
    let place = Place::new("simulate-stdin");
    assert_eq!(place.run("simulate", &["-"], GOOD.as_bytes()).code, Some(0));
    let ran = place.run("simulate", &["-"], b"\n\ntitle = 1\n");
    assert!(ran.err.starts_with("error: standard input:3:9: "), "{ran:?}");
}

#[test]
fn the_plot_does_not_overwrite_the_scenario() {
    let place = Place::new("simulate-overwrite");
    place.write("good.toml", GOOD);
    let ran = place.run("simulate", &["good.toml", "--plot", "./good.toml"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("name another"), "{ran:?}");
}

#[test]
fn more_calls_than_are_kept_end_the_run_and_not_the_memory() {
    let place = Place::new("simulate-overfull");
    place.write(
        "a.toml",
        "title = \"a\"\nduration = \"1h\"\n[[load]]\nfrom = \"0s\"\nrate = \"10000/1s\"\n\
         [[service]]\nfrom = \"0s\"\nlatency = \"30m\"\n[flow]\n",
    );
    let ran = place.run("simulate", &["a.toml"], b"");
    assert!(
        ran.code == Some(2) && ran.err.contains("after 100 s more than 1000000 calls are in the service"),
        "{ran:?}"
    );
}

#[test]
fn more_callers_than_are_kept_end_the_run_and_not_the_memory() {
    let place = Place::new("simulate-crowd");
    place.write(
        "a.toml",
        "title = \"a\"\nduration = \"1h\"\n[[load]]\nfrom = \"0s\"\nrate = \"100000/1s\"\n\
         [[service]]\nfrom = \"0s\"\nlatency = \"1s\"\n[flow]\nquota = \"1/1s\"\nwhen_empty = \"queue\"\n",
    );
    let ran = place.run("simulate", &["a.toml"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("more than 50000000 arrivals"), "{ran:?}");
    place.write("a.toml", std::fs::read_to_string(place.path().join("a.toml")).unwrap().replace("\"1h\"", "\"2s\""));
    let ran = place.run("simulate", &["a.toml"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("after 1 s more than 100000 callers wait at once"), "{ran:?}");
}

#[test]
fn an_unknown_example_is_answered_with_those_there_are() {
    let place = Place::new("simulate-example");
    let ran = place.run("simulate", &["--example", "fast-upstream"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("available: slow-downstream, provider-429, day-quota"), "{ran:?}");
    let ran = place.run("simulate", &["--bogus"], b"");
    assert!(ran.code == Some(2) && ran.err.contains("sluicegate simulate --help"), "{ran:?}");
    let ran = place.run("simulate", &[], b"");
    assert!(ran.code == Some(2) && ran.err.contains("SCENARIO.toml"), "{ran:?}");
}
