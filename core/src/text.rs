//! Limits as people write them. Everything here also runs in constants.

use core::fmt;
use core::time::Duration;

use crate::rate::QuotaError;
use crate::{Limit, Quota, Rate, WindowLimit};

/// A text that is not a limit, with the text and what is accepted.
///
/// ```
/// use sluicegate_core::Limit;
///
/// let error = "300/fortnight".parse::<Limit>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\"300/fortnight\": unknown unit of time; expected ns, us, ms, s, m, h or d, as in 300/1m or 7/3s burst 20"
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParseError {
    reason: Reason,
    excerpt: Excerpt,
}

impl ParseError {
    /// The quota that the text describes but that cannot be enforced, where that is what is wrong.
    pub const fn quota_error(&self) -> Option<QuotaError> {
        match self.reason {
            Reason::Quota(error) => Some(error),
            _ => None,
        }
    }

    const fn new(reason: Reason, text: &str) -> Self {
        Self { reason, excerpt: Excerpt::new(text) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.excerpt)?;
        let wrong = match self.reason {
            Reason::Empty => "nothing to read",
            Reason::BareZero => {
                return f.write_str("0 can be read both ways; write `off` for no limit or `deny` to admit nothing");
            }
            Reason::NoPeriod => {
                return f.write_str("a number alone has no period; write tokens per period, as in 300/1m");
            }
            Reason::Tokens => "the tokens are not a whole number from 1 to 18446744073709551615",
            Reason::Slash => "no `/` between tokens and period",
            Reason::PeriodMissing => "no period after `/`",
            Reason::PeriodCount => "the number in the period is not a whole number from 1 to 18446744073709551615",
            Reason::UnitMissing => return write!(f, "the period has no unit of time; {UNITS_EXPECTED}"),
            Reason::UnitUnknown => return write!(f, "unknown unit of time; {UNITS_EXPECTED}"),
            Reason::UnitCase => return write!(f, "units of time are in lower case; {UNITS_EXPECTED}"),
            Reason::TwoUnits => return f.write_str("a period is one number and one unit; write 90s, not 1m30s"),
            Reason::PeriodTooLong => {
                return f.write_str("the period is too long; the longest is 18446744073709551615ns, about 584 years");
            }
            Reason::BurstMissing => "no number after `burst`",
            Reason::Burst => "the burst is not a whole number from 1 to 18446744073709551615",
            Reason::DebtMissing => "no number after `debt`",
            Reason::Debt => "the debt is not a whole number from 0 to 18446744073709551615",
            Reason::Rest => "something follows that is not `burst CAPACITY` or `debt TOKENS`",
            Reason::NotAlone => return f.write_str("`off` and `deny` stand alone; nothing may follow them"),
            Reason::Quota(error) => return error.fmt(f),
        };
        write!(f, "{wrong}; {EXPECTED}")
    }
}

impl fmt::Debug for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParseError({self})")
    }
}

impl core::error::Error for ParseError {}

pub(crate) const fn parse_limit(text: &str) -> Result<Limit, ParseError> {
    let mut cursor = Cursor::new(text);
    cursor.skip_spaces();
    let word = if cursor.eat_word(b"off") {
        Limit::Unlimited
    } else if cursor.eat_word(b"deny") {
        Limit::DenyAll
    } else {
        return match parse_quota(text) {
            Ok(quota) => Ok(Limit::Quota(quota)),
            Err(error) => Err(error),
        };
    };
    cursor.skip_spaces();
    if cursor.is_done() { Ok(word) } else { Err(ParseError::new(Reason::NotAlone, text)) }
}

pub(crate) const fn parse_window_limit(text: &str) -> Result<WindowLimit, ParseError> {
    let limit = match parse_rate(text) {
        Ok(rate) => WindowLimit::from_rate(rate),
        // A word, a burst, or what a limit's errors describe best.
        Err(_) => match parse_limit(text) {
            Ok(limit) => WindowLimit::new(limit),
            Err(error) => return Err(error),
        },
    };
    match limit {
        Ok(limit) => Ok(limit),
        Err(error) => Err(ParseError::new(Reason::Quota(error), text)),
    }
}

pub(crate) const fn parse_quota(text: &str) -> Result<Quota, ParseError> {
    let mut cursor = Cursor::new(text);
    let rate = match cursor.rate(text) {
        Ok(rate) => rate,
        Err(error) => return Err(error),
    };
    let burst = match cursor.part(b"burst", Reason::BurstMissing, Reason::Burst, text) {
        Ok(Some(burst)) => burst,
        Ok(None) => rate.tokens(),
        Err(error) => return Err(error),
    };
    let debt = match cursor.part(b"debt", Reason::DebtMissing, Reason::Debt, text) {
        Ok(Some(debt)) => debt,
        Ok(None) => 0,
        Err(error) => return Err(error),
    };
    cursor.skip_spaces();
    if !cursor.is_done() {
        return Err(ParseError::new(Reason::Rest, text));
    }
    let quota = match Quota::with_burst(rate, burst) {
        Ok(quota) => quota.with_debt(debt),
        Err(error) => Err(error),
    };
    match quota {
        Ok(quota) => Ok(quota),
        Err(error) => Err(ParseError::new(Reason::Quota(error), text)),
    }
}

pub(crate) const fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    let mut cursor = Cursor::new(text);
    match cursor.rate(text) {
        Ok(rate) => {
            cursor.skip_spaces();
            if cursor.is_done() { Ok(rate) } else { Err(ParseError::new(Reason::Rest, text)) }
        }
        Err(error) => Err(error),
    }
}

/// The period as a count of the largest unit that divides it.
pub(crate) fn largest_unit(nanoseconds: u64) -> (u64, &'static str) {
    let mut best = (nanoseconds, "ns");
    for (name, length) in UNITS {
        if nanoseconds % length == 0 {
            best = (nanoseconds / length, core::str::from_utf8(name).unwrap_or("ns"));
        }
    }
    best
}

/// A place in a text. After a method has failed to eat a part that must be there, it may lie anywhere.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0 }
    }

    const fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    const fn peek(&self) -> Option<u8> {
        if self.is_done() { None } else { Some(self.text[self.at]) }
    }

    const fn skip_spaces(&mut self) -> bool {
        let start = self.at;
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.at > start
    }

    /// Eats `word` in any case, if no letter or digit follows it.
    const fn eat_word(&mut self, word: &[u8]) -> bool {
        let mut length = 0;
        while length < word.len() {
            if self.at + length >= self.text.len() || !self.text[self.at + length].eq_ignore_ascii_case(&word[length]) {
                return false;
            }
            length += 1;
        }
        if self.at + length < self.text.len() && self.text[self.at + length].is_ascii_alphanumeric() {
            return false;
        }
        self.at += length;
        true
    }

    /// Eats decimal digits, single underscores between them allowed.
    const fn count(&mut self) -> Option<u64> {
        let start = self.at;
        let mut value: u64 = 0;
        let mut after_digit = false;
        while let Some(byte) = self.peek() {
            if byte.is_ascii_digit() {
                value = match value.checked_mul(10) {
                    Some(tens) => match tens.checked_add((byte - b'0') as u64) {
                        Some(sum) => sum,
                        None => return None,
                    },
                    None => return None,
                };
                after_digit = true;
            } else if byte == b'_' && after_digit {
                after_digit = false;
            } else {
                break;
            }
            self.at += 1;
        }
        if self.at == start || !after_digit { None } else { Some(value) }
    }

    /// Eats a space, `word` and a number, if they come next.
    const fn part(
        &mut self,
        word: &[u8],
        missing: Reason,
        unreadable: Reason,
        text: &str,
    ) -> Result<Option<u64>, ParseError> {
        self.skip_spaces();
        let spaced = self.at > 0 && matches!(self.text[self.at - 1], b' ' | b'\t' | b'\n' | b'\r');
        if !spaced || !self.eat_word(word) {
            return Ok(None);
        }
        self.skip_spaces();
        if self.is_done() {
            return Err(ParseError::new(missing, text));
        }
        match self.count() {
            Some(count) if !matches!(self.peek(), Some(b'.' | b',')) => Ok(Some(count)),
            _ => Err(ParseError::new(unreadable, text)),
        }
    }

    /// Eats `TOKENS/PERIOD`.
    const fn rate(&mut self, text: &str) -> Result<Rate, ParseError> {
        self.skip_spaces();
        if self.is_done() {
            return Err(ParseError::new(Reason::Empty, text));
        }
        let tokens = match self.count() {
            Some(tokens) => tokens,
            None => return Err(ParseError::new(Reason::Tokens, text)),
        };
        self.skip_spaces();
        match self.peek() {
            Some(b'/') => self.at += 1,
            None if tokens == 0 => return Err(ParseError::new(Reason::BareZero, text)),
            None => return Err(ParseError::new(Reason::NoPeriod, text)),
            Some(b'.' | b',') => return Err(ParseError::new(Reason::Tokens, text)),
            Some(_) => return Err(ParseError::new(Reason::Slash, text)),
        }
        self.skip_spaces();
        let count = match self.peek() {
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b',' | b'_') => match self.count() {
                Some(count) => count,
                None => return Err(ParseError::new(Reason::PeriodCount, text)),
            },
            Some(_) => 1,
            None => return Err(ParseError::new(Reason::PeriodMissing, text)),
        };
        if let Some(b'.' | b',') = self.peek() {
            return Err(ParseError::new(Reason::PeriodCount, text));
        }
        self.skip_spaces();
        let unit = match self.unit() {
            Ok(unit) => unit,
            Err(reason) => return Err(ParseError::new(reason, text)),
        };
        let Some(nanoseconds) = count.checked_mul(unit) else {
            return Err(ParseError::new(Reason::PeriodTooLong, text));
        };
        match Rate::new(tokens, Duration::from_nanos(nanoseconds)) {
            Ok(rate) => Ok(rate),
            Err(error) => Err(ParseError::new(Reason::Quota(error), text)),
        }
    }

    /// Eats a unit of time and returns its length in nanoseconds.
    const fn unit(&mut self) -> Result<u64, Reason> {
        let start = self.at;
        while let Some(b'a'..=b'z' | b'A'..=b'Z') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(if self.is_done() { Reason::UnitMissing } else { Reason::UnitUnknown });
        }
        let mut index = 0;
        while index < UNITS.len() {
            let (name, length) = UNITS[index];
            match self.spells(start, name) {
                Spelling::Other => {}
                // `M` is no minute.
                Spelling::OtherCase => return Err(Reason::UnitCase),
                Spelling::Same => {
                    return if let Some(b'0'..=b'9') = self.peek() { Err(Reason::TwoUnits) } else { Ok(length) };
                }
            }
            index += 1;
        }
        let is_burst = !matches!(self.spells(start, b"burst"), Spelling::Other);
        Err(if is_burst { Reason::UnitMissing } else { Reason::UnitUnknown })
    }

    /// How what was eaten since `start` compares with `word`, which is in lower case.
    const fn spells(&self, start: usize, word: &[u8]) -> Spelling {
        if self.at - start != word.len() {
            return Spelling::Other;
        }
        let mut spelling = Spelling::Same;
        let mut index = 0;
        while index < word.len() {
            let letter = self.text[start + index];
            if !letter.eq_ignore_ascii_case(&word[index]) {
                return Spelling::Other;
            }
            if letter != word[index] {
                spelling = Spelling::OtherCase;
            }
            index += 1;
        }
        spelling
    }
}

enum Spelling {
    Same,
    OtherCase,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    Empty,
    BareZero,
    NoPeriod,
    Tokens,
    Slash,
    PeriodMissing,
    PeriodCount,
    PeriodTooLong,
    UnitMissing,
    UnitUnknown,
    UnitCase,
    TwoUnits,
    BurstMissing,
    Burst,
    DebtMissing,
    Debt,
    Rest,
    NotAlone,
    Quota(QuotaError),
}

/// The beginning of a text, kept without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Excerpt {
    bytes: [u8; EXCERPT_BYTES],
    length: u8,
    is_cut: bool,
}

impl Excerpt {
    const fn new(text: &str) -> Self {
        let text = text.as_bytes();
        let mut length = if text.len() > EXCERPT_BYTES { EXCERPT_BYTES } else { text.len() };
        // Cut before a character, not within one.
        while length > 0 && length < text.len() && text[length] & 0b1100_0000 == 0b1000_0000 {
            length -= 1;
        }
        let mut bytes = [0; EXCERPT_BYTES];
        let mut index = 0;
        while index < length {
            bytes[index] = text[index];
            index += 1;
        }
        Self { bytes, length: length as u8, is_cut: length < text.len() }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default();
        write!(f, "{text:?}")?;
        if self.is_cut { f.write_str("...") } else { Ok(()) }
    }
}

const EXPECTED: &str = "expected TOKENS/PERIOD [burst CAPACITY] [debt TOKENS], such as 300/1m or 7/3s burst 20; \
     a limit may also be `off` or `deny`";
const UNITS_EXPECTED: &str = "expected ns, us, ms, s, m, h or d, as in 300/1m or 7/3s burst 20";

/// Units of time in nanoseconds, shortest first.
const UNITS: [(&[u8], u64); 7] = [
    (b"ns", 1),
    (b"us", 1_000),
    (b"ms", 1_000_000),
    (b"s", 1_000_000_000),
    (b"m", 60_000_000_000),
    (b"h", 3_600_000_000_000),
    (b"d", 86_400_000_000_000),
];

/// Enough for every sensible limit, and small enough to be copied.
const EXCERPT_BYTES: usize = 48;
