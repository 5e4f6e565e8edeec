#![cfg_attr(
    any(not(doctest), all(feature = "metrics", feature = "tracing", feature = "runtime")),
    doc = include_str!("../README.md")
)]
#![cfg_attr(
    all(doctest, not(all(feature = "metrics", feature = "tracing", feature = "runtime"))),
    doc = "The page's examples need the features `metrics`, `tracing` and `runtime`."
)]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "metrics", feature = "tracing"))]
mod fill;
#[cfg(feature = "metrics")]
mod metrics_observer;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod names;
#[cfg(feature = "tracing")]
mod tracing_observer;

pub use sluicegate_core;
pub use sluicegate_core::*;

#[cfg(all(feature = "metrics", feature = "runtime"))]
pub use metrics_observer::MetricsRegistryObserver;
#[cfg(feature = "metrics")]
pub use metrics_observer::{MetricsAlerts, MetricsBreakerObserver, MetricsFlowObserver, MetricsObserver, describe};
#[cfg(feature = "tracing")]
pub use tracing_observer::TracingObserver;
#[cfg(all(feature = "tracing", feature = "runtime"))]
pub use tracing_observer::TracingRegistryObserver;
