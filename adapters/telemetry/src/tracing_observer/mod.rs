//! What limiters, breakers and flows do, by the facade `tracing`.

mod events;
#[cfg(feature = "runtime")]
mod registry;

use sluicegate_core::{AlertChange, Nanos};
use tracing::{info, warn};

pub use events::TracingObserver;
#[cfg(feature = "runtime")]
pub use registry::TracingRegistryObserver;

/// An alert of `limiter` was raised or cleared, and when, where that is known.
fn tell_alert(limiter: &str, now: Option<Nanos>, change: &AlertChange) {
    let AlertChange { alert, is_raised, value, threshold, .. } = change;
    let now = now.map(Nanos::as_u64);
    if *is_raised {
        warn!(target: TARGET, limiter, now, %alert, %value, %threshold, "alert raised");
    } else {
        info!(target: TARGET, limiter, now, %alert, %value, %threshold, "alert cleared");
    }
}

const TARGET: &str = "sluicegate";
