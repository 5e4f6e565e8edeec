//! The token bucket whose quota may change while it is in use, and from which tokens can be reserved.

mod cell;
mod changing;
mod deciding;
mod limiter;
mod reservation;
mod settling;
mod step;
mod words;

pub use changing::AdjustError;
pub use limiter::AdjustableBucket;
pub use reservation::{Clocked, Reservable, Reservation};
