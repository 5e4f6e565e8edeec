//! The times that logs are written in.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;

/// A time in a log: nanoseconds since the Unix epoch, from the year 1800 to the end of 2261.
///
/// The bounds leave room in 64 bits for a clock's origin some decades earlier. It displays as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogTime(i64);

impl LogTime {
    /// The time `nanoseconds` after the Unix epoch, where it is within bounds.
    pub(crate) fn new(nanoseconds: i128) -> Option<Self> {
        if !(EARLIEST..=LATEST).contains(&nanoseconds) {
            return None;
        }
        i64::try_from(nanoseconds).ok().map(Self)
    }

    /// Nanoseconds since the Unix epoch.
    pub(crate) fn nanos(self) -> i64 {
        self.0
    }

    pub(crate) fn timestamp(self) -> Timestamp {
        // Every 64-bit count of nanoseconds is within jiff's years.
        Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or_default()
    }

    fn of(timestamp: Timestamp) -> Option<Self> {
        Self::new(timestamp.as_nanosecond())
    }
}

impl fmt::Display for LogTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

/// How to read a time.
#[derive(Clone, Debug)]
pub(crate) enum TimeFormat {
    /// RFC 3339, the common log's notation, or a Unix time.
    Known,
    /// A strptime format that was found to name a whole date.
    Strptime(String),
}

impl TimeFormat {
    /// Checks a strptime format by printing a time in it and reading that back.
    pub(crate) fn strptime(format: &str) -> Result<Self, String> {
        let printed = strtime::format(format, Timestamp::UNIX_EPOCH).map_err(|error| error.to_string())?;
        let broken = strtime::parse(format, &printed).map_err(|error| error.to_string())?;
        if broken.to_timestamp().is_err() && broken.to_datetime().is_err() {
            return Err("it does not name a whole date and time, such as %Y-%m-%d %H:%M:%S or %s".to_owned());
        }
        Ok(Self::Strptime(format.to_owned()))
    }

    /// Reads a time; without a zone it is in UTC.
    pub(crate) fn parse(&self, text: &[u8]) -> Option<LogTime> {
        match self {
            Self::Known => parse_known(text.trim_ascii()),
            Self::Strptime(format) => {
                let broken = strtime::parse(format, text).ok()?;
                // No zone database is at hand, so a zone by name cannot be honoured, and must not be passed over.
                if broken.iana_time_zone().is_some_and(|zone| zone != "UTC") {
                    return None;
                }
                let timestamp = broken.to_timestamp().or_else(|error| match broken.offset() {
                    Some(_) => Err(error),
                    None => broken.to_datetime().and_then(|datetime| Offset::UTC.to_timestamp(datetime)),
                });
                LogTime::of(timestamp.ok()?)
            }
        }
    }
}

fn parse_known(text: &[u8]) -> Option<LogTime> {
    if let Some(nanoseconds) = parse_unix(text) {
        return LogTime::new(nanoseconds);
    }
    let inner = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(text);
    if let Some(time) = parse_common(inner) {
        return Some(time);
    }
    static PARSER: DateTimeParser = DateTimeParser::new();
    let timestamp = PARSER.parse_timestamp(text).or_else(|error| match PARSER.parse_datetime(text) {
        // A named zone, in brackets, is no offset, and without an offset it says what nothing here can look up.
        Ok(datetime) if !text.contains(&b'[') => Offset::UTC.to_timestamp(datetime),
        _ => Err(error),
    });
    LogTime::of(timestamp.ok()?)
}

/// Reads `17/May/2015:10:05:03 +0000`, with an optional fraction after the seconds: the whole of `text`.
pub(crate) fn parse_common(text: &[u8]) -> Option<LogTime> {
    let (clock, rest) = text.split_at_checked(20)?;
    let [d1, d2, b'/', m1, m2, m3, b'/', y1, y2, y3, y4, b':', h1, h2, b':', i1, i2, b':', s1, s2] = *clock else {
        return None;
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(&[m1, m2, m3]))?;
    let number = |tens: u8, ones: u8| Some(digit(tens)? * 10 + digit(ones)?);
    let year = i16::from(number(y1, y2)?) * 100 + i16::from(number(y3, y4)?);
    // A leap second is counted into the second before it, as Unix time does.
    let second = number(s1, s2)?;
    let second = if second == 60 { 59 } else { second };

    let (subsec, zone) = match rest.strip_prefix(b".") {
        None => (0, rest),
        Some(rest) => {
            let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (parse_fraction(&rest[..length])?, &rest[length..])
        }
    };
    let [b' ', sign, z1, z2, z3, z4] = *zone else {
        return None;
    };
    let (hours, minutes) = (number(z1, z2)?, number(z3, z4)?);
    if hours > 25 || minutes > 59 {
        return None;
    }
    let seconds = (i32::from(hours) * 60 + i32::from(minutes)) * 60;
    let offset = Offset::from_seconds(match sign {
        b'+' => seconds,
        b'-' => -seconds,
        _ => return None,
    });
    let month = i8::try_from(month + 1).ok()?;
    let datetime =
        DateTime::new(year, month, number(d1, d2)?, number(h1, h2)?, number(i1, i2)?, second, subsec).ok()?;
    LogTime::of(offset.ok()?.to_timestamp(datetime).ok()?)
}

/// Reads a Unix time in nanoseconds. Whole numbers are seconds, milliseconds, microseconds or nanoseconds by their size.
fn parse_unix(text: &[u8]) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, rest) = digits.split_at(length);
    if whole.is_empty() || whole.len() > 19 {
        return None;
    }
    let whole = whole.iter().fold(0_i128, |value, byte| value * 10 + i128::from(byte - b'0'));
    let fraction = match rest {
        [] => 0,
        [b'.', fraction @ ..] => i128::from(parse_fraction(fraction)?),
        _ => return None,
    };
    let scale = match whole {
        0..=99_999_999_999 => 1_000_000_000,
        100_000_000_000..=99_999_999_999_999 => 1_000_000,
        100_000_000_000_000..=99_999_999_999_999_999 => 1_000,
        _ => 1,
    };
    let nanoseconds = whole * scale + fraction * scale / 1_000_000_000;
    Some(if is_negative { -nanoseconds } else { nanoseconds })
}

/// The digits after a point, in billionths; what lies beyond nine digits is dropped.
fn parse_fraction(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((0..9).fold(0, |value, place| value * 10 + digits.get(place).map_or(0, |byte| i32::from(byte - b'0'))))
}

fn digit(byte: u8) -> Option<i8> {
    byte.is_ascii_digit().then(|| (byte - b'0') as i8)
}

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// 1800-01-01T00:00:00Z.
const EARLIEST: i128 = -5_364_662_400 * 1_000_000_000;
/// The last nanosecond of 2261.
const LATEST: i128 = 9_214_646_400 * 1_000_000_000 - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Option<String> {
        TimeFormat::Known.parse(text.as_bytes()).map(|time| time.to_string())
    }

    #[test]
    fn known_notations_are_told_apart() {
        for (text, expected) in [
            ("17/May/2015:10:05:03 +0000", "2015-05-17T10:05:03Z"),
            ("[17/May/2015:10:05:03 +0200]", "2015-05-17T08:05:03Z"),
            ("17/May/2015:10:05:03.25 -0330", "2015-05-17T13:35:03.25Z"),
            ("2015-05-17T10:05:03Z", "2015-05-17T10:05:03Z"),
            ("2015-05-17T10:05:03.123456789+02:00", "2015-05-17T08:05:03.123456789Z"),
            ("2015-05-17 10:05:03", "2015-05-17T10:05:03Z"),
            ("2015-05-17 10:05:03,5", "2015-05-17T10:05:03.5Z"),
            ("31/Dec/2016:23:59:60 +0000", "2016-12-31T23:59:59Z"),
            ("1431857103", "2015-05-17T10:05:03Z"),
            ("1431857103.000000001", "2015-05-17T10:05:03.000000001Z"),
            ("1431857103123", "2015-05-17T10:05:03.123Z"),
            ("1431857103123456", "2015-05-17T10:05:03.123456Z"),
            ("1431857103123456789", "2015-05-17T10:05:03.123456789Z"),
            ("-1.5", "1969-12-31T23:59:58.5Z"),
            ("0", "1970-01-01T00:00:00Z"),
            ("2024-07-01T12:00:00+02:00[Europe/Berlin]", "2024-07-01T10:00:00Z"),
            ("1800-01-01T00:00:00Z", "1800-01-01T00:00:00Z"),
            ("2261-12-31T23:59:59.999999999Z", "2261-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(known(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "-",
            "yesterday",
            "30/Feb/2015:10:05:03 +0000",
            "17/May/2015:24:05:03 +0000",
            "17/May/2015:10:05:03",
            "17/May/2015:10:05:03 UTC",
            "17/May/2015:10:05:03. +0000",
            "1799-12-31T23:59:59Z",
            "2262-01-01T00:00:00Z",
            "99999999999999999999",
            "1.",
            "12a",
            "2024-07-01T12:00:00[Europe/Berlin]",
        ] {
            assert_eq!(known(text), None, "{text}");
        }
    }

    #[test]
    fn a_strptime_format_must_name_a_whole_time() {
        let time = |format: &str, text: &str| {
            TimeFormat::strptime(format).unwrap().parse(text.as_bytes()).map(|time| time.to_string())
        };
        assert_eq!(time("%Y-%m-%d %H:%M:%S", "2024-02-29 01:02:03").as_deref(), Some("2024-02-29T01:02:03Z"));
        assert_eq!(time("%d.%m.%Y %T%.f %z", "29.02.2024 01:02:03.5 +0100").as_deref(), Some("2024-02-29T00:02:03.5Z"));
        assert_eq!(time("%s", "1431857103").as_deref(), Some("2015-05-17T10:05:03Z"));
        assert_eq!(time("%Y-%m-%d %H:%M:%S", "2024-02-30 01:02:03"), None);
        assert_eq!(time("%Y-%m-%d %H:%M:%S %Q", "2024-07-01 12:00:00 +0200").as_deref(), Some("2024-07-01T10:00:00Z"));
        assert_eq!(time("%Y-%m-%d %H:%M:%S %Q", "2024-07-01 12:00:00 Europe/Berlin"), None);
        assert_eq!(time("%Y-%m-%d %H:%M:%S %Q", "2024-07-01 12:00:00 Nowhere/Land"), None);
        assert!(TimeFormat::strptime("%H:%M").is_err());
        assert!(TimeFormat::strptime("%Y %!").is_err());
        assert!(TimeFormat::strptime("").is_err());
    }
}
