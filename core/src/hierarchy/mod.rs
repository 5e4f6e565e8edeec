//! Several limits over one request: every one of them, or none.
//!
//! # How it stays exact
//!
//! A request looks at every level first, and where one lacks what it asks for, it is denied without a write. Only a request
//! for which all levels have enough goes on to take: it *holds* its cost at each level but the last, takes it at the last
//! one, and that is the instant at which it is admitted; then what it holds counts as taken. If a level that had enough a
//! moment ago has not when its turn comes, because another request was faster, all that is held is let go. So holds
//! that come to nothing exist only in races that are lost within some tens of instructions.
//!
//! While it lasts, such a hold hides tokens that are still there. So each level counts what its holds ask for (`begun`,
//! `ended`), and who finds too little there looks again if what was in flight meanwhile might have been enough. A denial is
//! only answered if it is right, at an instant within the call, whatever becomes of the holds in flight.
//!
//! A queue lets a request go that may not be there any more, and so holds until it learns of it, which may be long
//! ([`Hierarchy::hold_at`]). Once all levels hold, the outermost too, such a request counts as admitted and its holds have ended as far as
//! `begun` and `ended` tell: others are denied what it holds at once, as they are what was taken, and letting go is giving back.
//!
//! Nobody waits while holding anything: who lost a race lets go before looking again. Requests that take in one order also
//! make progress as a whole, because the one that holds furthest along can only be stopped by an admission.
//!
//! # What remains possible
//!
//! - A caller that lacks no more than what others hold in flight looks again, which on threads may last for a time slice of
//!   a holder that was suspended, and for longer where many threads keep holding while refill keeps up with them; so does
//!   one that asks for nearly all of a level's capacity. An interrupt handler must therefore not ask a level that the code it
//!   interrupts asks.
//! - Who asks a level's limiter directly, past the level, does not look again, and may be denied what a hold that comes to
//!   nothing hides for some tens of instructions.

mod held;
mod hold;
mod level;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
mod owned;
mod permit;
mod request;

pub use level::{Holding, Level};
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use owned::OwnedHierarchy;
pub use request::{DeniedBy, DuplicateLevel, Hierarchy};
