//! A quota that each rule has a share of its own for.

use core::time::Duration;

use sluicegate_runtime::{
    Adapted, AdaptiveOptions, ErrorRule, Load, LoadRule, Nanos, PaceRule, Quota, QuotaLeft, Share, Signals, quota,
};

/// A tenth less at first, though processors allow a half, memory 0.7, errors 0.8 and the pace 0.6.
pub(crate) fn by_every_rule() -> (Adapted, Quota) {
    let percent = |percent| Share::percent(percent).unwrap();
    let memory = LoadRule::new().cut(percent(10), percent(30));
    let errors = ErrorRule::new().cuts([percent(20); 3]);
    let options = AdaptiveOptions::new(quota!("100/1h")).cpu(LoadRule::new()).memory(memory).errors(errors);
    let mut policy = options.pace(PaceRule::new()).most_fall(percent(10)).build().unwrap();
    let busy = Load::percent(100);
    let left = QuotaLeft::new(60, Duration::from_secs(3600));
    let signals = Signals::default().with_cpu(busy).with_memory(busy).with_errors(1).with_quota_left(left);
    let quota = policy.evaluate(Nanos::ZERO, &signals).unwrap();
    (policy.allowed(), quota)
}
