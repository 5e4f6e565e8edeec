//! One JSON object a line, with the names that common servers and loggers give to things.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{ALL, Record, Selection, Unreadable, parse_cost, request_part, without_query};
use crate::args::{By, Cost};

pub(super) fn read<'l>(line: &'l [u8], selection: &Selection) -> Result<Record<'l>, Unreadable> {
    match std::str::from_utf8(line) {
        Ok(text) => read_text(text, selection),
        Err(_) => {
            let text = String::from_utf8_lossy(line);
            let Record { time, key, cost } = read_text(&text, selection)?;
            Ok(Record { time, key: Cow::Owned(key.into_owned()), cost })
        }
    }
}

fn read_text<'l>(text: &'l str, selection: &Selection) -> Result<Record<'l>, Unreadable> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_map(Names { by: selection.by, wants_size: selection.cost == Cost::Bytes });
    let found = found.and_then(|found| deserializer.end().map(|()| found)).map_err(|_| "not a JSON object")?;

    let time = text_of(found.time.value.ok_or("no time among the object's fields (see --help for their names)")?)?;
    let time = selection.time.parse(&time).ok_or("the time is not one that can be read (see --time-format)")?;
    let key = match (selection.by, found.key) {
        (By::All, _) => Cow::Borrowed(ALL),
        (_, Found { value: None, .. }) => return Err("no field for --by in the object (see --help for their names)"),
        (By::Path, Found { value: Some(value), is_request: false, .. }) => map(text_of(value)?, without_query),
        (by, Found { value: Some(value), is_request: true, .. }) => map(text_of(value)?, |text| request_part(text, by)),
        (_, Found { value: Some(value), .. }) => text_of(value)?,
    };
    let cost = match selection.cost {
        Cost::One => 1,
        Cost::Bytes => parse_cost(&text_of(found.size.value.ok_or("no size among the object's fields")?)?)?,
    };
    Ok(Record { time, key, cost })
}

/// A string's content, a number's digits, and `-` for null.
fn text_of(value: &RawValue) -> Result<Cow<'_, [u8]>, Unreadable> {
    let json = value.get();
    match json.as_bytes() {
        [b'"', inner @ .., b'"'] if memchr::memchr(b'\\', inner).is_none() => Ok(Cow::Borrowed(inner)),
        [b'"', ..] => match serde_json::from_str::<String>(json) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(_) => Err("not a JSON object"),
        },
        [b'-' | b'0'..=b'9', ..] => Ok(Cow::Borrowed(json.as_bytes())),
        b"null" => Ok(Cow::Borrowed(b"-")),
        _ => Err("a field that is neither text nor a number"),
    }
}

fn map<'a>(text: Cow<'a, [u8]>, part: impl Fn(&[u8]) -> &[u8]) -> Cow<'a, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(part(text)),
        Cow::Owned(text) => Cow::Owned(part(&text).to_vec()),
    }
}

/// The fields that matter, each the first of its names that the object has.
#[derive(Default)]
struct Fields<'l> {
    time: Found<'l>,
    key: Found<'l>,
    size: Found<'l>,
}

struct Found<'l> {
    value: Option<&'l RawValue>,
    rank: usize,
    /// It is a whole request line, of which a part is wanted.
    is_request: bool,
}

impl Default for Found<'_> {
    fn default() -> Self {
        Self { value: None, rank: usize::MAX, is_request: false }
    }
}

/// Visits an object's fields and keeps only those that are wanted.
struct Names {
    by: By,
    wants_size: bool,
}

impl<'l> Visitor<'l> for Names {
    type Value = Fields<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Fields<'l>, A::Error> {
        let mut fields = Fields::default();
        while let Some(Name(name)) = map.next_key::<Name<'l>>()? {
            let rank = |names: &[&str]| names.iter().position(|known| *known == name);
            let (slot, rank) = if let Some(rank) = rank(&TIME) {
                (&mut fields.time, rank)
            } else if let Some(rank) = rank(key_names(self.by)) {
                (&mut fields.key, rank)
            } else if let (true, Some(rank)) = (self.wants_size, rank(&SIZE)) {
                (&mut fields.size, rank)
            } else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value::<&'l RawValue>()?;
            if rank < slot.rank {
                *slot = Found { value: Some(value), rank, is_request: name == REQUEST };
            }
        }
        Ok(fields)
    }
}

struct Name<'l>(Cow<'l, str>);

impl<'l> Deserialize<'l> for Name<'l> {
    fn deserialize<D: Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'l> Visitor<'l> for Text {
            type Value = Name<'l>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'l str) -> Result<Name<'l>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'l>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

fn key_names(by: By) -> &'static [&'static str] {
    match by {
        By::Ip => &["ip", "remote_addr", "client_ip", "remote_ip", "clientip", "client", "remote_host"],
        By::Path => &["path", "uri", "request_uri", "url", REQUEST],
        By::Method => &["method", "request_method", "http_method", "verb", REQUEST],
        By::Status => &["status", "status_code", "response_code", "code"],
        By::All => &[],
    }
}

const TIME: [&str; 9] =
    ["time", "timestamp", "ts", "@timestamp", "time_iso8601", "time_local", "msec", "datetime", "date"];
const SIZE: [&str; 6] = ["bytes", "body_bytes_sent", "bytes_sent", "response_size", "size", "content_length"];
const REQUEST: &str = "request";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::TimeFormat;

    fn fields(line: &[u8], by: By) -> Result<(String, String, u64), Unreadable> {
        let selection = Selection { by, cost: Cost::Bytes, time: TimeFormat::Known };
        read(line, &selection)
            .map(|record| (record.time.to_string(), String::from_utf8_lossy(&record.key).into_owned(), record.cost))
    }

    #[test]
    fn the_first_name_known_is_taken() {
        let time = "2015-05-17T10:05:03.000000001Z".to_owned();
        for (line, by, key, cost) in [
            (r#"{"time":"2015-05-17T10:05:03.000000001Z","ip":"a","bytes":7}"#, By::Ip, "a", 7),
            (r#"{"ts":1431857103.000000001,"host":"x","client_ip":"b","ip":"a","size":"7"}"#, By::Ip, "a", 7),
            (r#"{"@timestamp":"2015-05-17T12:05:03.000000001+02:00","uri":"/p?q","bytes":null}"#, By::Path, "/p", 0),
            (r#" {"msec":"1431857103.000000001","request":"PUT /p?q HTTP/1.1","bytes":"-"} "#, By::Path, "/p", 0),
            (
                r#"{"time":1431857103000000001,"request":"PUT /p HTTP/1.1","x":{"y":[1,{}]},"bytes":1}"#,
                By::Method,
                "PUT",
                1,
            ),
            (r#"{"time":1431857103000000001,"status":200,"bytes":1}"#, By::Status, "200", 1),
            (r#"{"time":1431857103000000001,"\u0069p":"\u00e9\n","bytes":1}"#, By::Ip, "\u{e9}\n", 1),
            (r#"{"time":1431857103000000001,"bytes":1}"#, By::All, "all", 1),
        ] {
            assert_eq!(fields(line.as_bytes(), by), Ok((time.clone(), key.to_owned(), cost)), "{line}");
        }
        let line = b"{\"time\":1431857103000000001,\"ip\":\"a\xff\",\"bytes\":1}";
        assert_eq!(fields(line, By::Ip), Ok((time, "a\u{fffd}".to_owned(), 1)));
    }

    #[test]
    fn other_lines_are_not_read() {
        for line in [
            "{",
            "[]",
            "7",
            "{} x",
            r#"{"time":1,"ip":"a"}"#,
            r#"{"time":1,"bytes":1}"#,
            r#"{"ip":"a","bytes":1}"#,
            r#"{"time":"never","ip":"a","bytes":1}"#,
            r#"{"time":1,"ip":["a"],"bytes":1}"#,
            r#"{"time":1,"ip":"a","bytes":-1}"#,
            r#"{"time":1,"ip":"\ud800","bytes":1}"#,
        ] {
            assert!(fields(line.as_bytes(), By::Ip).is_err(), "{line}");
        }
    }
}
