//! The structured fields `RateLimit` and `RateLimit-Policy`.

use core::time::Duration;
use std::collections::HashMap;

use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parameters, Parser};

use crate::reader::{Reader, bounded};
use crate::{LONGEST_WAIT, QuotaUnit, ServiceLimit};

impl Reader<'_> {
    /// What `RateLimit` names, each with its policy, and then the policies that it does not name.
    pub(crate) fn fields(&mut self) -> Vec<ServiceLimit> {
        let limits = self.lines(RATE_LIMIT, SERVICE_LIMITS, Self::service_limits);
        let policies = self.lines(RATE_LIMIT_POLICY, POLICIES, Self::policies);
        with_policies(limits, policies)
    }

    /// Reads a list, or the dictionary of before. A list is never a dictionary that says anything: that needs a `=` after its first name.
    fn service_limits(&mut self, value: &[u8]) -> Option<Vec<ServiceLimit>> {
        if let Ok(list) = Parser::new(value).parse::<List>() {
            return Some(list.into_iter().filter_map(|entry| self.service_limit(entry, value)).collect());
        }
        let dictionary = Parser::new(value).parse::<Dictionary>().ok()?;
        let mut whole = |key| match dictionary.get(key)? {
            ListEntry::Item(Item { bare_item, .. }) => Field::RATE_LIMIT.whole(self, bare_item, value),
            ListEntry::InnerList(_) => Field::RATE_LIMIT.refuse(self, value),
        };
        let limit = ServiceLimit {
            quota: whole("limit"),
            remaining: whole("remaining"),
            until_reset: whole("reset").map(|seconds| bounded(Duration::from_secs(seconds))),
            ..ServiceLimit::default()
        };
        Some(if limit == ServiceLimit::default() { Vec::new() } else { vec![limit] })
    }

    fn service_limit(&mut self, entry: ListEntry, value: &[u8]) -> Option<ServiceLimit> {
        let field = Field::RATE_LIMIT;
        let Some((name, parameters)) = named(entry) else { return field.refuse(self, value) };
        let Some(remaining) = parameters.get("r") else { return field.refuse(self, value) };
        let remaining = field.whole(self, remaining, value)?;
        let until_reset = parameters.get("t").and_then(|seconds| field.whole(self, seconds, value));
        Some(ServiceLimit {
            name: Some(name),
            partition_key: field.partition_key(self, &parameters, value),
            remaining: Some(remaining),
            until_reset: until_reset.map(|seconds| bounded(Duration::from_secs(seconds))),
            ..ServiceLimit::default()
        })
    }

    fn policies(&mut self, value: &[u8]) -> Option<Vec<ServiceLimit>> {
        let list = Parser::new(value).parse::<List>().ok()?;
        Some(list.into_iter().filter_map(|entry| self.policy(entry, value)).collect())
    }

    fn policy(&mut self, entry: ListEntry, value: &[u8]) -> Option<ServiceLimit> {
        let field = Field::POLICY;
        let (name, quota, parameters) = match entry {
            // Of drafts up to 07.
            ListEntry::Item(Item { bare_item: quota @ BareItem::Integer(_), params }) => {
                (None, field.whole(self, &quota, value)?, params)
            }
            entry => {
                let Some((name, parameters)) = named(entry) else { return field.refuse(self, value) };
                let Some(quota) = parameters.get("q") else { return field.refuse(self, value) };
                (Some(name), field.whole(self, quota, value)?, parameters)
            }
        };
        let window = match parameters.get("w").and_then(|seconds| field.whole(self, seconds, value)) {
            Some(0) => field.refuse(self, value),
            seconds => seconds.map(Duration::from_secs).filter(|window| *window <= LONGEST_WAIT),
        };
        let quota_unit = match parameters.get("qu") {
            None => QuotaUnit::default(),
            Some(BareItem::String(unit)) => QuotaUnit::from(unit.as_str()),
            Some(_) => field.refuse(self, value).unwrap_or_default(),
        };
        let partition_key = field.partition_key(self, &parameters, value);
        Some(ServiceLimit { name, partition_key, quota: Some(quota), quota_unit, window, ..ServiceLimit::default() })
    }
}

/// What is refused as a whole where one of its parameters is wrong.
#[derive(Clone, Copy)]
struct Field {
    header: &'static str,
    accepted: &'static str,
}

impl Field {
    const RATE_LIMIT: Self = Self { header: RATE_LIMIT, accepted: SERVICE_LIMITS };
    const POLICY: Self = Self { header: RATE_LIMIT_POLICY, accepted: POLICIES };

    fn whole(self, reader: &mut Reader<'_>, item: &BareItem, value: &[u8]) -> Option<u64> {
        let whole = item.as_integer().and_then(|whole| u64::try_from(whole).ok());
        whole.or_else(|| self.refuse(reader, value))
    }

    fn partition_key(self, reader: &mut Reader<'_>, parameters: &Parameters, value: &[u8]) -> Option<Vec<u8>> {
        match parameters.get("pk")? {
            BareItem::ByteSequence(key) => Some(key.clone()),
            _ => self.refuse(reader, value),
        }
    }

    fn refuse<T>(self, reader: &mut Reader<'_>, value: &[u8]) -> Option<T> {
        reader.refuse(self.header, value, self.accepted);
        None
    }
}

/// Names are strings, or tokens as some services write them.
fn named(entry: ListEntry) -> Option<(String, Parameters)> {
    match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(name), params }) => Some((name.into(), params)),
        ListEntry::Item(Item { bare_item: BareItem::Token(name), params }) => Some((name.into(), params)),
        _ => None,
    }
}

/// A limit's policy has its name, and its partition key if there is one that has; else no key, and else any.
fn with_policies(mut limits: Vec<ServiceLimit>, policies: Vec<ServiceLimit>) -> Vec<ServiceLimit> {
    let mut named = HashMap::new();
    for (index, policy) in policies.iter().enumerate() {
        if let Some(name) = policy.name.as_deref() {
            named.entry((name, policy.partition_key.as_deref())).or_insert(index);
        }
    }
    // Only after those without a key.
    for (index, policy) in policies.iter().enumerate() {
        if let Some(name) = policy.name.as_deref() {
            named.entry((name, None)).or_insert(index);
        }
    }
    let mut is_named = vec![false; policies.len()];
    for limit in &mut limits {
        let Some(name) = limit.name.as_deref() else { continue };
        let found = named.get(&(name, limit.partition_key.as_deref())).or_else(|| named.get(&(name, None)));
        let Some(&index) = found else { continue };
        let policy = &policies[index];
        is_named[index] = true;
        limit.quota = policy.quota;
        limit.quota_unit = policy.quota_unit.clone();
        limit.window = policy.window;
        if limit.partition_key.is_none() {
            limit.partition_key = policy.partition_key.clone();
        }
    }
    let others = policies.into_iter().zip(is_named).filter(|(_, is_named)| !is_named).map(|(policy, _)| policy);
    limits.extend(others);
    limits
}

const RATE_LIMIT: &str = "RateLimit";
const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";

const SERVICE_LIMITS: &str = "`\"name\";r=50;t=30` for each policy, or `limit=100, remaining=50, reset=30`, of whole numbers that are not negative";
const POLICIES: &str =
    "`\"name\";q=100;w=60` for each policy, of whole numbers that are not negative, and a window of 1 or more";
