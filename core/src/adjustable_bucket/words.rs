//! A rule as words that may be read while they are overwritten.

use crate::Limit;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::token_bucket::BucketStep;

/// What decides, and the quota that a bucket without one had last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    /// The quota in force, or the last one that was, by which the state is still counted.
    pub(super) step: Option<BucketStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unlimited,
    DenyAll,
    Quota,
}

impl Rule {
    pub(super) const fn new(limit: Limit) -> Self {
        match limit {
            Limit::Unlimited => Self { kind: Kind::Unlimited, step: None },
            Limit::DenyAll => Self { kind: Kind::DenyAll, step: None },
            Limit::Quota(quota) => Self { kind: Kind::Quota, step: Some(BucketStep::new(quota)) },
        }
    }

    pub(super) const fn limit(&self) -> Limit {
        match (self.kind, &self.step) {
            (Kind::Quota, Some(step)) => Limit::Quota(step.quota()),
            (Kind::Unlimited, _) => Limit::Unlimited,
            (Kind::DenyAll | Kind::Quota, _) => Limit::DenyAll,
        }
    }
}

/// One rule, and the version that it is in force under.
///
/// Only one caller writes at a time, and only while another slot is in force. Readers may read meanwhile: they find out
/// and throw away what they read.
#[derive(Debug)]
pub(super) struct Slot {
    words: [AtomicU64; WORDS],
    version: AtomicU64,
}

impl Slot {
    const_unless_loom! {
        pub(super) fn new(version: u64, rule: Rule) -> Self {
            Self { words: atomics(rule_to_words(&rule)), version: AtomicU64::new(version) }
        }
    }

    /// The rule, if it is that of `version` from the first word read to the last.
    #[inline(always)]
    pub(super) fn read(&self, version: u64) -> Option<Rule> {
        // Acquire, paired with the release in `write`: who sees a word of a later version sees below that this slot's
        // version is no longer the one looked for.
        let words = core::array::from_fn(|index| self.words[index].load(Ordering::Acquire));
        // Relaxed: the words above are acquired, so this is read after them.
        if self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        Some(rule_from_words(&words))
    }

    pub(super) fn write(&self, version: u64, rule: &Rule) {
        // Relaxed: each word below is released, so this is written before them.
        self.version.store(NONE, Ordering::Relaxed);
        let words = rule_to_words(rule);
        for (slot, word) in self.words.iter().zip(words) {
            // Release, paired with the acquire in `read`: see there.
            slot.store(word, Ordering::Release);
        }
        // Release: who sees this version also sees its words.
        self.version.store(version, Ordering::Release);
    }
}

#[cfg(not(all(sluicegate_loom, feature = "loom")))]
mod form {
    use super::{AtomicU64, Kind, Rule};
    use crate::token_bucket::{BucketStep, STEP_WORDS};

    pub(super) const WORDS: usize = STEP_WORDS + 1;

    pub(super) const fn atomics(words: [u64; WORDS]) -> [AtomicU64; WORDS] {
        let mut atomics = [const { AtomicU64::new(0) }; WORDS];
        let mut index = 0;
        while index < WORDS {
            atomics[index] = AtomicU64::new(words[index]);
            index += 1;
        }
        atomics
    }

    pub(super) const fn rule_to_words(rule: &Rule) -> [u64; WORDS] {
        let kind = match rule.kind {
            Kind::Unlimited => 0,
            Kind::DenyAll => 1,
            Kind::Quota => 2,
        };
        let mut words = [0; WORDS];
        words[0] = kind;
        if let Some(step) = &rule.step {
            words[0] |= HAS_STEP;
            let step = step.to_words();
            let mut index = 0;
            while index < STEP_WORDS {
                words[index + 1] = step[index];
                index += 1;
            }
        }
        words
    }

    #[inline(always)]
    pub(super) fn rule_from_words(words: &[u64; WORDS]) -> Rule {
        let [first, step @ ..] = words;
        let kind = match first & !HAS_STEP {
            0 => Kind::Unlimited,
            2 => Kind::Quota,
            _ => Kind::DenyAll,
        };
        Rule { kind, step: if first & HAS_STEP != 0 { BucketStep::from_words(step) } else { None } }
    }

    const HAS_STEP: u64 = 1 << 8;
}

/// Two words are enough to be torn apart, and a model of twelve would not end. Models use small quotas per second.
#[cfg(all(sluicegate_loom, feature = "loom"))]
mod form {
    use super::{AtomicU64, Kind, Rule};
    use crate::token_bucket::BucketStep;
    use crate::{PER_SECOND, Quota, Rate};

    pub(super) const WORDS: usize = 2;

    pub(super) fn atomics(words: [u64; WORDS]) -> [AtomicU64; WORDS] {
        words.map(AtomicU64::new)
    }

    pub(super) fn rule_to_words(rule: &Rule) -> [u64; WORDS] {
        let quota = rule.step.map(|step| step.quota());
        let tokens = quota.map_or(0, |quota| quota.rate().tokens());
        [tokens << 8 | rule.kind as u64, quota.map_or(0, |quota| quota.capacity() << 32 | quota.debt())]
    }

    pub(super) fn rule_from_words(words: &[u64; WORDS]) -> Rule {
        let kind = match words[0] & 0xff {
            0 => Kind::Unlimited,
            1 => Kind::DenyAll,
            _ => Kind::Quota,
        };
        let step = Rate::new(words[0] >> 8, PER_SECOND).ok().map(|rate| {
            let quota =
                Quota::with_burst(rate, words[1] >> 32).and_then(|quota| quota.with_debt(words[1] & 0xffff_ffff));
            BucketStep::new(quota.unwrap_or_else(|error| unreachable!("torn: {error}")))
        });
        Rule { kind, step }
    }
}

use form::{WORDS, atomics, rule_from_words, rule_to_words};

/// No version is so large.
const NONE: u64 = u64::MAX;
