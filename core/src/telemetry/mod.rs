//! Counting what limiters do, and raising alerts by the counts.

mod alerts;
mod counters;
mod policy;
mod window;

pub use alerts::{Alert, AlertChange, AlertChanges, AlertValue, Alerts};
pub use counters::{CounterSnapshot, Counters};
pub use policy::{AlertOptions, AlertOptionsError, AlertPolicy};
