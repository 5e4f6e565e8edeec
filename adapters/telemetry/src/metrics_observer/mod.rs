//! What limiters, breakers and flows do, by the facade `metrics`.

mod alerts;
mod breaker;
mod describe;
mod flow;
mod limiter;
#[cfg(feature = "runtime")]
mod registry;

pub use alerts::MetricsAlerts;
pub use breaker::MetricsBreakerObserver;
pub use describe::describe;
pub use flow::MetricsFlowObserver;
pub use limiter::MetricsObserver;
#[cfg(feature = "runtime")]
pub use registry::MetricsRegistryObserver;
