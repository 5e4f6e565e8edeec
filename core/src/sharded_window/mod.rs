//! The fixed window, in one word or in many shards: exact for one hot limit from many cores.

mod counts;
mod limit;
mod limiter;
mod shards;
mod step;

pub use limit::WindowLimit;
pub use limiter::ShardedWindow;
pub use shards::{Shard, Shards};
pub use step::{WindowState, WindowStep};
