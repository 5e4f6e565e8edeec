#![cfg_attr(
    any(not(doctest), all(feature = "metrics", feature = "tracing")),
    doc = include_str!("../README.md")
)]
#![cfg_attr(
    all(doctest, not(all(feature = "metrics", feature = "tracing"))),
    doc = "The page's examples need the features `metrics` and `tracing`."
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

#[cfg(feature = "metrics")]
pub use metrics_observer::{MetricsAlerts, MetricsBreakerObserver, MetricsFlowObserver, MetricsObserver, describe};
#[cfg(feature = "tracing")]
pub use tracing_observer::TracingObserver;
