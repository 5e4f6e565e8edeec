//! The alerts as a state machine: what is raised and cleared at each evaluation.

use core::fmt;
use core::iter::FusedIterator;
use core::time::Duration;

use super::counters::{CounterSnapshot, HUNDREDTH};
use super::policy::AlertPolicy;
use super::window::Window;
use crate::nanos::nanos_to_duration;
use crate::{Inspection, Nanos, Share};

/// What may be wrong with a limiter, or with those who use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alert {
    /// Too large a share of the requests is denied: the limit is too low, or somebody asks too often.
    Rejections,
    /// Too little is left: the next burst will be denied.
    LowFill,
    /// It is emptied too often at one go: those who ask do not spread their requests.
    Bursts,
    /// Its limit is changed too often: what adapts it swings.
    Adjustments,
    /// Once empty it does not recover: what is asked for is as much as flows in, or more.
    SlowRecovery,
}

impl Alert {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rejections, Self::LowFill, Self::Bursts, Self::Adjustments, Self::SlowRecovery];

    /// Its name in metrics and logs, such as `low_fill`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rejections => "rejections",
            Self::LowFill => "low_fill",
            Self::Bursts => "bursts",
            Self::Adjustments => "adjustments",
            Self::SlowRecovery => "slow_recovery",
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Raises and clears the five alerts of one limiter, by what its [`Counters`](crate::Counters) have counted.
///
/// It is a state machine that is told what was counted, some seconds apart, and answers with what has changed. It reads no clock and
/// starts nothing.
///
/// # What is exact
///
/// - An alert is raised at the first evaluation that finds its value beyond what [`AlertOptions`](crate::AlertOptions) say, and cleared
///   at the first one that finds it back at what they say, and at no other.
/// - The last minute, or hour, reaches back to an evaluation: the oldest within it that is the first in its twelfth of it. So it is as long
///   as that or up to a twelfth shorter, if evaluations are not further apart than a twelfth of a minute, 5 s, and never longer. If nobody
///   evaluates for longer, what was counted since counts as if it had come evenly. What was counted before the first evaluation does not count.
/// - *Rejections*: the number of requests matters only for raising. Without requests the share of denials is 0.
/// - *Low fill* goes by the inspection alone, at the instant of the evaluation; so it is told apart from bursts.
/// - *Slow recovery* goes by the inspection, and by what admissions saw in between. The time counts from the evaluation that first learns
///   that it was emptied, so it is never too long.
/// - A limiter without a capacity, because its limit denies everything, has neither low fill nor a slow recovery.
///
/// # A clock that misbehaves
///
/// Only the steps forward between evaluations count as time. A step back raises nothing, and the wait for a recovery begins anew; a
/// leap ahead ages what was counted. Counts that have become less begin anew as well. Nothing panics or wraps.
///
/// ```
/// use sluicegate_core::{Alert, AlertPolicy, Alerts, Counters, ManualClock, Nanos, TokenBucket, quota};
///
/// const LIMIT: sluicegate_core::Quota = quota!("10/1s");
/// let bucket = TokenBucket::with_clock(LIMIT, ManualClock::new()).observed_by(Counters::new(LIMIT));
/// let mut alerts = Alerts::new(AlertPolicy::default());
/// let mut evaluate = |now| alerts.evaluate(now, &bucket.observer().snapshot(), bucket.inspect_at(now)).collect::<Vec<_>>();
/// assert!(evaluate(Nanos::ZERO).is_empty());
///
/// (0..30).for_each(|_| _ = bucket.try_acquire(1));
/// let changes = evaluate(Nanos::ZERO);
/// assert_eq!(changes[0].to_string(), "rejections raised: 66.6666 %, limit 5 %");
/// assert_eq!(changes[1].to_string(), "low_fill raised: 0 %, limit 10 %");
///
/// // After two minutes without requests.
/// assert!(evaluate(Nanos::from_secs(120)).iter().all(|change| !change.is_raised));
/// assert!(!alerts.is_raised(Alert::Rejections));
/// ```
#[derive(Clone, Debug)]
pub struct Alerts {
    policy: AlertPolicy,
    /// By the number of the alert.
    is_raised: [bool; Alert::ALL.len()],
    /// The reading of the last evaluation, and the sum of all steps forward up to it, of which there can be more than a reading holds.
    last: Option<Nanos>,
    elapsed: u128,
    /// Admitted, denied, bursts.
    minute: Window<3>,
    /// Adjustments.
    hour: Window<1>,
    /// `elapsed` when it was first known to be empty, until it is half full again.
    empty_since: Option<u128>,
    /// How often admissions had seen it half full again, at the last evaluation.
    recovered: u64,
    /// Of how many times that it was emptied an inspection has seen the end.
    overcome: u64,
}

impl Alerts {
    /// None is raised.
    pub const fn new(policy: AlertPolicy) -> Self {
        Self {
            policy,
            is_raised: [false; Alert::ALL.len()],
            last: None,
            elapsed: 0,
            minute: Window::new(Duration::from_secs(60)),
            hour: Window::new(Duration::from_secs(3_600)),
            empty_since: None,
            recovered: 0,
            overcome: 0,
        }
    }

    /// Goes by all that was counted so far and what the limiter holds, at `now`, and returns what has changed.
    pub fn evaluate(&mut self, now: Nanos, counted: &CounterSnapshot, holds: Inspection) -> AlertChanges {
        self.follow(now);
        let totals = [counted.admitted, counted.denied, counted.bursts];
        let [admitted, denied, bursts] = self.minute.count(self.elapsed, totals);
        let [adjustments] = self.hour.count(self.elapsed, [counted.adjustments]);
        let empty_for = self.follow_recovery(counted, holds);

        let options = self.policy.options();
        let is_above = |(above, until), count| Verdict {
            is_beyond: count > above,
            is_back: count <= until,
            value: AlertValue::Count(count),
            threshold: AlertValue::Count(above),
        };
        let verdicts = Alert::ALL.map(|alert| match alert {
            Alert::Rejections => {
                let enough = admitted.saturating_add(denied) >= options.minimum_requests;
                options.rejections.map(|limits| rejections(limits, admitted, denied, enough))
            }
            Alert::LowFill => options.fill.map(|limits| low_fill(limits, holds)),
            Alert::Bursts => options.bursts.map(|limits| is_above(limits, bursts)),
            Alert::Adjustments => options.adjustments.map(|limits| is_above(limits, adjustments)),
            Alert::SlowRecovery => options.longest_recovery.map(|longest| slow_recovery(longest, empty_for)),
        });
        AlertChanges { changes: Alert::ALL.map(|alert| self.settle(alert, verdicts[alert as usize])), next: 0 }
    }

    /// Whether it is raised.
    pub const fn is_raised(&self, alert: Alert) -> bool {
        self.is_raised[alert as usize]
    }

    /// The policy.
    pub const fn policy(&self) -> &AlertPolicy {
        &self.policy
    }

    /// Counts the time that has passed.
    fn follow(&mut self, now: Nanos) {
        let last = self.last.replace(now).unwrap_or(now);
        self.elapsed += u128::from(now.as_u64().saturating_sub(last.as_u64()));
        if now < last {
            self.empty_since = self.empty_since.map(|_| self.elapsed);
        }
    }

    /// For how long it has been empty without being half full, if it has.
    fn follow_recovery(&mut self, counted: &CounterSnapshot, holds: Inspection) -> Option<Duration> {
        let was_half_full = core::mem::replace(&mut self.recovered, counted.recovered) != counted.recovered;
        let is_half_full = holds.capacity == 0 || Share::HALF.is_reached(holds.level, holds.capacity);
        if is_half_full || was_half_full {
            self.empty_since = None;
        }
        if is_half_full {
            self.overcome = counted.emptied;
            return None;
        }
        self.overcome = self.overcome.min(counted.emptied);
        let was_emptied = counted.emptied > counted.recovered.max(self.overcome);
        if was_emptied || !HUNDREDTH.is_reached(holds.level, holds.capacity) {
            self.empty_since.get_or_insert(self.elapsed);
        }
        self.empty_since.map(|since| nanos_to_duration(self.elapsed - since))
    }

    fn settle(&mut self, alert: Alert, verdict: Option<Verdict>) -> Option<AlertChange> {
        let Verdict { is_beyond, is_back, value, threshold } = verdict?;
        let is_raised = &mut self.is_raised[alert as usize];
        let changes = if *is_raised { is_back } else { is_beyond };
        *is_raised ^= changes;
        changes.then_some(AlertChange { alert, is_raised: *is_raised, value, threshold })
    }
}

/// What one evaluation finds of one alert. It is never both beyond and back.
#[derive(Clone, Copy)]
struct Verdict {
    is_beyond: bool,
    is_back: bool,
    value: AlertValue,
    threshold: AlertValue,
}

fn rejections((above, until): (Share, Share), admitted: u64, denied: u64, enough: bool) -> Verdict {
    let requests = u128::from(admitted) + u128::from(denied);
    let is_above = |share: Share| u128::from(denied) * MILLION > requests * u128::from(share.as_parts_per_million());
    Verdict {
        is_beyond: enough && is_above(above),
        is_back: !is_above(until),
        // Of no requests, none was denied.
        value: AlertValue::PartsPerMillion((u128::from(denied) * MILLION / requests.max(1)) as u32),
        threshold: AlertValue::PartsPerMillion(above.as_parts_per_million()),
    }
}

fn low_fill((below, until): (Share, Share), holds: Inspection) -> Verdict {
    let has_no_fill = holds.capacity == 0;
    Verdict {
        is_beyond: !has_no_fill && !below.is_reached(holds.level, holds.capacity),
        is_back: has_no_fill || until.is_reached(holds.level, holds.capacity),
        value: AlertValue::PartsPerMillion(holds.fill_parts_per_million()),
        threshold: AlertValue::PartsPerMillion(below.as_parts_per_million()),
    }
}

fn slow_recovery(longest: Duration, empty_for: Option<Duration>) -> Verdict {
    Verdict {
        is_beyond: empty_for.is_some_and(|empty_for| empty_for > longest),
        is_back: empty_for.is_none(),
        value: AlertValue::Time(empty_for.unwrap_or_default()),
        threshold: AlertValue::Time(longest),
    }
}

/// What one evaluation has changed: an iterator over at most one change of each alert, in the order of [`Alert::ALL`].
#[derive(Clone, Debug)]
#[must_use = "these changes are told once"]
pub struct AlertChanges {
    changes: [Option<AlertChange>; Alert::ALL.len()],
    next: usize,
}

impl Iterator for AlertChanges {
    type Item = AlertChange;

    fn next(&mut self) -> Option<AlertChange> {
        let rest = self.changes.get(self.next..)?;
        let skipped = rest.iter().take_while(|change| change.is_none()).count();
        self.next += skipped + 1;
        rest.get(skipped).copied().flatten()
    }
}

impl FusedIterator for AlertChanges {}

/// An alert that was raised or cleared.
///
/// ```
/// use sluicegate_core::{Alert, AlertPolicy, Alerts, Counters, Inspection, Nanos};
///
/// let mut alerts = Alerts::new(AlertPolicy::default());
/// let mut changes = alerts.evaluate(Nanos::ZERO, &Counters::default().snapshot(), Inspection::new(9, 100));
/// let change = changes.next().expect("nine of a hundred is less than a tenth");
/// assert_eq!((change.alert, change.is_raised), (Alert::LowFill, true));
/// assert_eq!(change.to_string(), "low_fill raised: 9 %, limit 10 %");
/// assert!(changes.next().is_none() && alerts.is_raised(Alert::LowFill));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AlertChange {
    /// Which one.
    pub alert: Alert,
    /// Whether it was raised; otherwise it was cleared.
    pub is_raised: bool,
    /// What was found.
    pub value: AlertValue,
    /// What raises the alert where it is exceeded, or undercut by the fill.
    pub threshold: AlertValue,
}

impl fmt::Display for AlertChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alert, is_raised, value, threshold } = self;
        let what = if *is_raised { "raised" } else { "cleared" };
        write!(f, "{alert} {what}: {value}, limit {threshold}")
    }
}

/// What an alert goes by, in the alert's own unit.
///
/// ```
/// use sluicegate_core::AlertValue;
/// assert_eq!(AlertValue::PartsPerMillion(62_500).to_string(), "6.25 %");
/// assert_eq!(AlertValue::Time(core::time::Duration::from_secs(31)).to_string(), "31s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertValue {
    /// Of the requests that were denied, or of the capacity that is left, in millionths, rounded down: 0 to 1 000 000.
    PartsPerMillion(u32),
    /// Bursts in the last minute, or adjustments in the last hour.
    Count(u64),
    /// For how long it has been empty without being half full; 0 s where it has not.
    Time(Duration),
}

impl fmt::Display for AlertValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PartsPerMillion(parts) => match Share::parts_per_million(*parts) {
                Ok(share) => share.fmt(f),
                Err(_) => f.write_str("0 %"),
            },
            Self::Count(count) => count.fmt(f),
            Self::Time(time) => fmt::Debug::fmt(time, f),
        }
    }
}

const MILLION: u128 = Share::ALL.as_parts_per_million() as u128;
