//! The token bucket whose quota may change while it is in use, and from which tokens can be reserved.

mod cell;
mod limiter;
mod reservation;
mod step;
mod words;

pub use limiter::{AdjustError, AdjustableBucket};
pub use reservation::{Reservable, Reservation};
