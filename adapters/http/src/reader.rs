//! One reader behind both forms: it reads what can be read, and keeps the first error.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};
use sfv::{BareItem, Item, List, ListEntry, Parameters, Parser};

use crate::{HeaderError, LONGEST_WAIT, ServiceLimits};

pub(crate) struct Reader<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) now: SystemTime,
    error: Option<HeaderError>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(headers: &'a HeaderMap, now: SystemTime) -> Self {
        Self { headers, now, error: None }
    }

    pub(crate) fn read(mut self) -> (ServiceLimits, Option<HeaderError>) {
        let retry_after = self.retry_after();
        let mut limits = self.fields();
        limits.extend(self.legacy());
        (ServiceLimits { retry_after, limits }, self.error)
    }

    /// From now until a point in time.
    pub(crate) fn until(&self, since_epoch: Duration) -> Duration {
        since_epoch.saturating_sub(self.now.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// The values of a header that may have one, on however many lines they are.
    pub(crate) fn once<T>(
        &mut self,
        header: &'static str,
        accepted: &'static str,
        read: impl Fn(&Self, &HeaderValue) -> Option<Vec<T>>,
    ) -> Vec<T> {
        let headers = self.headers;
        let mut values = Vec::new();
        for line in headers.get_all(header) {
            match read(self, line) {
                Some(read) => values.extend(read),
                None => self.refuse(header, line.as_bytes(), accepted),
            }
        }
        if values.len() > 1 {
            self.error.get_or_insert(HeaderError::Repeated { header, values: values.len() });
        }
        values
    }

    /// All lines are one value, as structured fields are; if that cannot be read, those of them that can.
    pub(crate) fn lines<T>(
        &mut self,
        header: &'static str,
        accepted: &'static str,
        read: impl Fn(&mut Self, &[u8]) -> Option<Vec<T>>,
    ) -> Vec<T> {
        let headers = self.headers;
        let lines: Vec<&[u8]> = headers.get_all(header).iter().map(HeaderValue::as_bytes).collect();
        let whole = lines.join(&b", "[..]);
        if let Some(all) = read(self, &whole) {
            return all;
        }
        self.refuse(header, &whole, accepted);
        lines.into_iter().filter_map(|line| read(self, line)).flatten().collect()
    }

    pub(crate) fn refuse(&mut self, header: &'static str, value: &[u8], accepted: &'static str) {
        self.error.get_or_insert_with(|| HeaderError::form(header, value, accepted));
    }
}

/// So long, or [`LONGEST_WAIT`].
pub(crate) fn bounded(time: Duration) -> Duration {
    time.min(LONGEST_WAIT)
}

/// A number that is not negative, with a fraction in billionths; what is below one is cut off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    pub(crate) whole: u64,
    pub(crate) billionths: u32,
}

impl Number {
    pub(crate) fn seconds(self) -> Duration {
        // Less than a second beside the whole ones, so it carries nothing.
        Duration::new(self.whole, self.billionths)
    }

    fn of_item(item: &BareItem) -> Option<Self> {
        let (whole, thousandths) = match item {
            BareItem::Integer(whole) => (u64::try_from(*whole).ok()?, 0),
            BareItem::Decimal(decimal) => {
                let thousandths = u64::try_from(decimal.as_integer_scaled_1000()).ok()?;
                (thousandths / 1_000, thousandths % 1_000)
            }
            _ => return None,
        };
        Some(Self { whole, billionths: thousandths as u32 * 1_000_000 })
    }

    /// Digits, and perhaps a point and digits: more of each than a structured field may have. A whole beyond 64 bits saturates.
    fn of_digits(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return None;
        }
        let value = |digit: u8| u64::from(digit - b'0');
        let whole = whole.bytes().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(value(digit)));
        let billionths = fraction.bytes().chain([b'0'; 9]).take(9).fold(0, |sum, digit| sum * 10 + value(digit));
        Some(Self { whole, billionths: billionths as u32 })
    }
}

/// Numbers that are not negative, and the parameters that each has. There is at least one.
pub(crate) fn numbers(value: &HeaderValue) -> Option<Vec<(Number, Parameters)>> {
    let Ok(list) = Parser::new(value.as_bytes()).parse::<List>() else {
        return Some(vec![(Number::of_digits(value.to_str().ok()?.trim())?, Parameters::new())]);
    };
    let number = |entry| match entry {
        ListEntry::Item(Item { bare_item, params }) => Some((Number::of_item(&bare_item)?, params)),
        ListEntry::InnerList(_) => None,
    };
    let numbers: Option<Vec<_>> = list.into_iter().map(number).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}
