//! A second, slow simulator to hold the first one to: written from what the documents promise, with nothing of its code and nothing of core's.
//! Lists are searched from end to end, quotients are kept as whole numbers of a part, and one thing happens at a time.

mod breaker;
mod bucket;
mod law;
mod load;
mod random;
mod record;
mod scenario;
mod service;
mod simulation;

pub(crate) use record::{PHASES, Part};
pub(crate) use scenario::any_scenario;
pub(crate) use simulation::simulate;

/// Nanoseconds from the beginning.
type Time = u64;

/// How a call ends for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    TooMany,
    TimedOut,
}

/// Who refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refuser {
    Limiter,
    Breaker,
    Concurrency,
}
