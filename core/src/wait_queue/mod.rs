//! The wait queue: who waits, in which order, and until when.

mod deadlines;
mod forecast;
mod grants;
mod queue;
mod slots;

pub use grants::{Served, Verdict};
pub use queue::{QueueFull, Ticket, WaitQueue};
pub use slots::{Slots, Waiting};
