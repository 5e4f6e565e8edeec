//! Requests over several levels of different kinds: every level, or none.

use core::fmt;

use sluicegate_core::{
    AdjustableBucket, FixedShard, Hierarchy, Level, ManualClock, Nanos, Shard, ShardedWindow, TokenBucket, WindowLimit,
    quota,
};

use crate::Random;

/// A global bucket, a window for each of two tenants, and a bucket of a client at the end.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    let Ok(per_tenant) = WindowLimit::parse("9/1s") else { return Err(fmt::Error) };
    let global = Level::new("global", AdjustableBucket::with_clock(quota!("7/1s burst 30"), ManualClock::new()));
    let tenants = [(); 2].map(|()| {
        let window: ShardedWindow<[Shard; 2], _, _> =
            ShardedWindow::with_array(per_tenant, ManualClock::new(), FixedShard(0));
        Level::new("tenant", window)
    });
    let client = TokenBucket::with_clock(quota!("11/3s burst 4"), ManualClock::new());

    let mut random = Random::new(3);
    let mut now = 0;
    for _ in 0..100 {
        now += random.below(400_000_000);
        let tenant = random.below(2) as usize;
        let costs = [random.below(4), random.one_of(&[1, 1, 2, 6, 10])];
        let Ok(hierarchy) = Hierarchy::new([&global, &tenants[tenant]]) else { return Err(fmt::Error) };
        write!(out, "{now} tenant {tenant} {costs:?}: ")?;
        match hierarchy.try_acquire_with_at(Nanos::new(now), costs, &client, 1) {
            Ok((levels, last)) => {
                let [global, tenant] = levels.map(|admitted| admitted.remaining);
                writeln!(out, "{global}, {tenant}, {} left", last.remaining)?;
            }
            Err(denied) => writeln!(out, "level {}, {}: {:?}", denied.level, denied.name, denied.denied)?,
        }
    }
    Ok(())
}
