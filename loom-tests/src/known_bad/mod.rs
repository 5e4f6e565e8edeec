//! Limiters with planted bugs, which the models must find: what a model cannot see, it does not check.
//!
//! Each door is one compact implementation, written apart from core's, with a switch for each bug. With every switch off
//! it is sound and passes the models that find the bugs, so it is the bug that they find and not the implementation.

mod adapting;
mod adjustable;
mod breaker;
mod bucket;
mod clocked;
mod counter;
mod flow;
mod hierarchy;
mod kept;
mod key_queue;
mod keyed;
mod pacer;
mod permits;
mod queue;
mod tally;
mod window;

pub use adapting::{AdaptingFlaws, CompactAdapting, CompactAdaptingPermit};
pub use adjustable::{AdjustableFlaws, CompactAdjustable};
pub use breaker::{BreakerFlaws, CompactBreaker, CompactPassed};
pub use bucket::{BucketFlaws, CompactBucket};
pub use clocked::{ClockedFlaws, CompactClocked};
pub use counter::{CompactCounter, CounterFlaws};
pub use flow::{CompactEntered, CompactFlow, FlowFlaws};
pub use hierarchy::{CompactTree, HierarchyFlaws};
pub use kept::CompactHandle;
pub use key_queue::{CompactKeys, KeyQueueFlaws};
pub use keyed::{CompactStore, StoreFlaws};
pub use pacer::{CompactPacer, PacerFlaws, Slot};
pub use permits::{CompactPermits, PermitFlaws};
pub use queue::{CompactQueue, QueueFlaws};
pub use tally::{CompactTally, TallyFlaws};
pub use window::{CompactWindow, WindowFlaws};

/// No bug.
#[derive(Debug)]
pub struct Sound;

impl AdaptingFlaws for Sound {}
impl AdjustableFlaws for Sound {}
impl BreakerFlaws for Sound {}
impl BucketFlaws for Sound {}
impl ClockedFlaws for Sound {}
impl CounterFlaws for Sound {}
impl FlowFlaws for Sound {}
impl HierarchyFlaws for Sound {}
impl KeyQueueFlaws for Sound {}
impl PacerFlaws for Sound {}
impl PermitFlaws for Sound {}
impl QueueFlaws for Sound {}
impl StoreFlaws for Sound {}
impl TallyFlaws for Sound {}
impl WindowFlaws for Sound {}
