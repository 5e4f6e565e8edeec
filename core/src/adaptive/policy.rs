//! All rules together, as the quota that they come to.

use core::fmt;
use core::time::Duration;

use super::{ALL, ErrorRule, Load, LoadRule, PaceRule, QuotaLeft};
use crate::{Nanos, Quota, Share};

/// A quota that adapts: to the load of the machine, to answers that say that it is too much, to what is left of a larger quota.
///
/// It is a state machine that is told what was measured, some seconds apart, and answers with the quota that should be in force:
/// hand that to [`AdjustableBucket::adjust`](crate::AdjustableBucket::adjust) or
/// [`KeyedTokenBucket::set_quota`](crate::KeyedTokenBucket).
///
/// # Guarantees
///
/// - The strictest rule wins; what each allows is a share of the base quota.
/// - From one evaluation to the next the share falls by no more than [`most_fall`](AdaptiveOptions::most_fall) and rises by no more than
///   [`most_rise`](AdaptiveOptions::most_rise). It is never below the [`floor`](AdaptiveOptions::floor), unless less is left of a quota; then it is a millionth at least.
/// - A target less than [`least_change`](AdaptiveOptions::least_change) away, and less than a sixteenth of what is in force, is let be, except for the base itself: every recovery ends at
///   exactly the base.
/// - All of it is computed in whole numbers: the same measurements give the same quotas on every machine.
///
/// ```
/// use sluicegate_core::{AdaptiveOptions, Load, LoadRule, Nanos, Signals, quota};
///
/// let mut policy = AdaptiveOptions::new(quota!("1000/1s")).cpu(LoadRule::new()).build()?;
/// let busy = Signals::default().with_cpu(Load::percent(100));
/// assert_eq!(policy.evaluate(Nanos::ZERO, &busy), Some(quota!("500/1s")));
/// assert_eq!(policy.evaluate(Nanos::from_secs(5), &busy), None);
///
/// let idle = Signals::default().with_cpu(Load::percent(5));
/// (1..30).for_each(|turn| _ = policy.evaluate(Nanos::from_secs(5 + 5 * turn), &idle));
/// assert_eq!(policy.quota(), quota!("1000/1s"));
/// # Ok::<(), sluicegate_core::AdaptiveOptionsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdaptivePolicy {
    options: AdaptiveOptions,
    /// Millionths of the base that are in force.
    share: u32,
    /// Millionths that each rule allowed last.
    allowed: Adapted,
}

/// How many millionths of the base each rule allowed at the last evaluation, and how many are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Adapted {
    /// By the load of processors.
    pub cpu: u32,
    /// By the use of memory.
    pub memory: u32,
    /// By errors.
    pub errors: u32,
    /// By what is left of a quota.
    pub pace: u32,
    /// In force.
    pub share: u32,
}

impl AdaptivePolicy {
    /// Goes by what was measured since the last evaluation, at `now`, and returns the quota that should be in force from now on, where that is
    /// another one than before.
    pub fn evaluate(&mut self, now: Nanos, signals: &Signals) -> Option<Quota> {
        let options = &mut self.options;
        let by_load = |rule: &mut Option<LoadRule>, load| rule.as_mut().map_or(ALL, |rule| rule.evaluate(load));
        let cpu = by_load(&mut options.cpu, signals.cpu);
        let memory = by_load(&mut options.memory, signals.memory);
        let errors = options.errors.as_mut().map_or(ALL, |rule| rule.evaluate(now, signals.errors));
        let pace = options.pace.as_ref().map_or(ALL, |rule| rule.evaluate(options.base, signals.quota_left));
        // What adapts to load has to go on asking, to learn that it may ask more. What is left of a quota is known without asking.
        let target = cpu.min(memory).min(errors).max(options.floor.as_parts_per_million()).min(pace).max(LEAST);
        let before = self.share;
        let least_change = options.least_change.as_parts_per_million().min(before / FINE);
        if target == ALL || target.abs_diff(before) >= least_change.max(1) {
            self.share = target.clamp(
                before.saturating_sub(options.most_fall.as_parts_per_million()),
                before.saturating_add(options.most_rise.as_parts_per_million()),
            );
        }
        self.allowed = Adapted { cpu, memory, errors, pace, share: self.share };
        (self.share != before).then(|| self.quota())
    }

    /// The quota that should be in force.
    pub fn quota(&self) -> Quota {
        self.options.base.scaled(self.share, self.options.least_burst)
    }

    /// Goes on with the same share of another base. The quota in force is [`quota`](Self::quota) then.
    pub const fn rebase(&mut self, base: Quota) {
        self.options.base = base;
    }

    /// The quota while nothing speaks against it.
    pub const fn base(&self) -> Quota {
        self.options.base
    }

    /// What each rule allowed at the last evaluation.
    pub const fn allowed(&self) -> Adapted {
        self.allowed
    }

    /// How far apart evaluations are meant to be.
    pub const fn every(&self) -> Duration {
        self.options.every
    }
}

/// What was measured since the last evaluation. What is not known is `None`, and changes nothing.
///
/// ```
/// use sluicegate_core::{Load, Signals};
/// assert_eq!(Signals::default().with_errors(3).with_cpu(Load::percent(70)).errors, 3);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Signals {
    /// The load of the processors.
    pub cpu: Option<Load>,
    /// The use of memory.
    pub memory: Option<Load>,
    /// Answers that said that it is too much: 429, 503.
    pub errors: u64,
    /// What is left of the quota that the pace goes by.
    pub quota_left: Option<QuotaLeft>,
}

impl Signals {
    /// With this load of the processors.
    pub const fn with_cpu(self, load: Load) -> Self {
        Self { cpu: Some(load), ..self }
    }

    /// With this use of memory.
    pub const fn with_memory(self, load: Load) -> Self {
        Self { memory: Some(load), ..self }
    }

    /// With so many answers that said that it is too much.
    pub const fn with_errors(self, errors: u64) -> Self {
        Self { errors, ..self }
    }

    /// With this left of the quota.
    pub const fn with_quota_left(self, left: QuotaLeft) -> Self {
        Self { quota_left: Some(left), ..self }
    }
}

/// What an [`AdaptivePolicy`] is built from: a base and at least one rule.
///
/// | | what | default |
/// |---|---|---|
/// | [`cpu`](Self::cpu), [`memory`](Self::memory) | rules for loads | none |
/// | [`errors`](Self::errors) | a rule for answers that say that it is too much | none |
/// | [`pace`](Self::pace) | a rule for what is left of a quota | none |
/// | [`every`](Self::every) | how far apart evaluations are | 5 s |
/// | [`floor`](Self::floor) | the least share of the base, whatever the rules say but for `pace` | 1 % |
/// | [`least_burst`](Self::least_burst) | the least capacity, whatever the share | 1 token |
/// | [`most_fall`](Self::most_fall) | by how much of the base the share falls at a time | 50 % |
/// | [`most_rise`](Self::most_rise) | by how much of the base it rises at a time | 10 % |
/// | [`least_change`](Self::least_change) | smaller changes are let be, unless they are a sixteenth of what is in force; but for the last to the base | 1 % |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a policy is built from them"]
pub struct AdaptiveOptions {
    base: Quota,
    cpu: Option<LoadRule>,
    memory: Option<LoadRule>,
    errors: Option<ErrorRule>,
    pace: Option<PaceRule>,
    every: Duration,
    floor: Share,
    most_fall: Share,
    most_rise: Share,
    least_change: Share,
    least_burst: u64,
}

impl AdaptiveOptions {
    /// The defaults for `base`, and no rules.
    pub const fn new(base: Quota) -> Self {
        Self {
            base,
            cpu: None,
            memory: None,
            errors: None,
            pace: None,
            every: Duration::from_secs(5),
            floor: Share::known_percent(1),
            most_fall: Share::known_percent(50),
            most_rise: Share::known_percent(10),
            least_change: Share::known_percent(1),
            least_burst: 1,
        }
    }

    /// Goes by the load of the processors.
    pub const fn cpu(self, rule: LoadRule) -> Self {
        Self { cpu: Some(rule), ..self }
    }

    /// Goes by the use of memory.
    pub const fn memory(self, rule: LoadRule) -> Self {
        Self { memory: Some(rule), ..self }
    }

    /// Goes by answers that say that it is too much.
    pub const fn errors(self, rule: ErrorRule) -> Self {
        Self { errors: Some(rule), ..self }
    }

    /// Goes by what is left of a quota.
    pub const fn pace(self, rule: PaceRule) -> Self {
        Self { pace: Some(rule), ..self }
    }

    /// How far apart evaluations are meant to be: 1 ms or more.
    pub const fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// The least share of the base, whatever the rules for loads and errors say: what adapts has to go on asking to learn that it may ask more. What is left of a
    /// quota is known without asking, so [`pace`](Self::pace) goes below it.
    pub const fn floor(self, floor: Share) -> Self {
        Self { floor, ..self }
    }

    /// By how much of the base the share falls at most from one evaluation to the next.
    pub const fn most_fall(self, fall: Share) -> Self {
        Self { most_fall: fall, ..self }
    }

    /// By how much of the base the share rises at most from one evaluation to the next.
    pub const fn most_rise(self, rise: Share) -> Self {
        Self { most_rise: rise, ..self }
    }

    /// The least capacity that the quota has, whatever the share, unless the base has less. Where it adapts, so does its burst, and a cost above that is refused as one that
    /// never fits until it has recovered: so this should be the largest cost. At least 1.
    ///
    /// ```
    /// use sluicegate_core::{AdaptiveOptions, ErrorRule, Nanos, Signals, quota};
    ///
    /// let options = AdaptiveOptions::new(quota!("100/1s burst 10")).errors(ErrorRule::new());
    /// let mut policy = options.least_burst(6).build()?;
    /// assert_eq!(policy.evaluate(Nanos::ZERO, &Signals::default().with_errors(1)), Some(quota!("50/1s burst 6")));
    /// # Ok::<(), sluicegate_core::AdaptiveOptionsError>(())
    /// ```
    pub const fn least_burst(self, tokens: u64) -> Self {
        Self { least_burst: tokens, ..self }
    }

    /// A smaller change than this share of the base is let be, or than a sixteenth of what is in force if that is less; but for the last to the base.
    pub const fn least_change(self, change: Share) -> Self {
        Self { least_change: change, ..self }
    }

    /// The policy, with the base in force.
    ///
    /// # Errors
    /// [`AdaptiveOptionsError`] says what is missing.
    pub const fn build(self) -> Result<AdaptivePolicy, AdaptiveOptionsError> {
        if self.cpu.is_none() && self.memory.is_none() && self.errors.is_none() && self.pace.is_none() {
            return Err(AdaptiveOptionsError::NoRule);
        }
        if self.every.as_nanos() < LEAST_EVERY.as_nanos() {
            return Err(AdaptiveOptionsError::AllTheTime { every: self.every });
        }
        let allowed = Adapted { cpu: ALL, memory: ALL, errors: ALL, pace: ALL, share: ALL };
        Ok(AdaptivePolicy { options: self, share: ALL, allowed })
    }
}

/// Why there is no such [`AdaptivePolicy`]. It is the configuration's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdaptiveOptionsError {
    /// Nothing would ever change.
    NoRule,
    /// Evaluations are less than a millisecond apart.
    AllTheTime {
        /// How far.
        every: Duration,
    },
}

impl fmt::Display for AdaptiveOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRule => f.write_str("no rule to adapt by: give at least one of cpu, memory, errors and pace"),
            Self::AllTheTime { every } => write!(f, "evaluations {every:?} apart: it has to be 1 ms or longer"),
        }
    }
}

impl core::error::Error for AdaptiveOptionsError {}

/// A change by this part of what is in force is none to let be.
const FINE: u32 = 16;

/// The least share, in millionths.
const LEAST: u32 = 1;

const LEAST_EVERY: Duration = Duration::from_millis(1);
