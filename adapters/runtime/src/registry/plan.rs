//! What a registry makes a flow from.

use core::time::Duration;

use sluicegate_core::{AdaptivePolicy, AlertPolicy, Inheritance, Limit, Nanos, Signals};

use crate::flow::FlowOptions;

/// Tells what was measured: it is asked before each evaluation, for this flow alone.
///
/// Any closure that can go to another task is one. Errors that the flow has counted itself come on top of what it tells. If it panics, its flow is
/// restarted, and it is asked again at the next evaluation.
///
/// ```
/// use sluicegate_runtime::{Load, Measure, Nanos, Signals};
///
/// fn measured(mut measure: impl Measure) -> Signals {
///     measure.measure(Nanos::ZERO)
/// }
/// assert_eq!(measured(|_now| Signals::default().with_cpu(Load::percent(40))).cpu, Some(Load::percent(40)));
/// ```
pub trait Measure: Send + 'static {
    /// What is so at `now`.
    fn measure(&mut self, now: Nanos) -> Signals;
}

impl<F: FnMut(Nanos) -> Signals + Send + 'static> Measure for F {
    fn measure(&mut self, now: Nanos) -> Signals {
        self(now)
    }
}

/// How a flow begins again whose task has panicked.
///
/// It does so after the first panic since an evaluation went through, and not more often than in the time in which its bucket would fill itself
/// ([`recovery_time`](sluicegate_core::Quota::recovery_time)); otherwise it goes on as with [`Restore`](Self::Restore). So a task that panics again and again lets no more
/// through than twice the quota, shuts nobody out, and leaves the breaker and the rules their say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnRestart {
    /// With all tokens, the quota that was configured in force and the breaker closed: availability first.
    #[default]
    Full,
    /// With none, the quota that was configured in force and the breaker closed: no token is made. What had been cut before the panic is given back all the same; where that
    /// must not be, it is [`Restore`](Self::Restore).
    Empty,
    /// As if nothing had happened: tokens, breaker and quota stay as they are.
    Restore,
}

impl OnRestart {
    /// What the bucket keeps.
    pub(super) const fn inheritance(self) -> Option<Inheritance> {
        match self {
            Self::Full => Some(Inheritance::Full),
            Self::Empty => Some(Inheritance::Empty),
            Self::Restore => None,
        }
    }
}

/// What a [`FlowRegistry`](super::FlowRegistry) makes a flow from: what it is composed of, how it adapts, which alerts it has, and how it begins again.
///
/// ```
/// use sluicegate_runtime::{AdaptiveOptions, ErrorRule, FlowOptions, FlowPlan, OnRestart, quota};
///
/// let adaptive = AdaptiveOptions::new(quota!("100/1s")).errors(ErrorRule::new()).build()?;
/// let plan = FlowPlan::new(FlowOptions::new(quota!("100/1s")).in_flight(20)).adaptive(adaptive).on_restart(OnRestart::Empty);
/// # let _ = plan;
/// # Ok::<(), sluicegate_runtime::AdaptiveOptionsError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a plan does nothing until a registry makes a flow of it"]
pub struct FlowPlan {
    pub(super) flow: FlowOptions,
    pub(super) adaptive: Option<AdaptivePolicy>,
    pub(super) alerts: Option<AlertPolicy>,
    pub(super) on_restart: OnRestart,
}

impl FlowPlan {
    /// A flow that does not adapt, and has no alerts.
    pub const fn new(flow: FlowOptions) -> Self {
        Self { flow, adaptive: None, alerts: None, on_restart: OnRestart::Full }
    }

    /// One that adapts by `policy`, whose quota becomes its limit, whatever the options had: the base, or the share of it that a policy has got to which has adapted before. There it
    /// begins again after a panic.
    pub fn adaptive(self, policy: AdaptivePolicy) -> Self {
        let flow = FlowOptions { limit: Limit::Quota(policy.quota()), ..self.flow };
        Self { flow, adaptive: Some(policy), ..self }
    }

    /// One that counts what its bucket decides, and raises and clears alerts by that: see [`Alerts`](sluicegate_core::Alerts).
    pub const fn alerts(self, policy: AlertPolicy) -> Self {
        Self { flow: self.flow, adaptive: self.adaptive, alerts: Some(policy), on_restart: self.on_restart }
    }

    /// How far apart its evaluations are; `None` where there is nothing to evaluate.
    pub(super) fn every(&self) -> Option<Duration> {
        match (&self.adaptive, &self.alerts) {
            (Some(policy), _) => Some(policy.every()),
            (None, Some(_)) => Some(EVERY),
            (None, None) => None,
        }
    }

    /// How it begins again once its task has panicked.
    pub const fn on_restart(self, on_restart: OnRestart) -> Self {
        Self { flow: self.flow, adaptive: self.adaptive, alerts: self.alerts, on_restart }
    }
}

/// How far apart evaluations of alerts are where nothing adapts.
const EVERY: Duration = Duration::from_secs(5);
