//! Quotas that adapt, by every rule at once: the same shares on every machine.

use core::fmt;
use core::time::Duration;

use sluicegate_core::{
    AdaptiveOptions, ErrorRule, Load, LoadRule, Nanos, PaceRule, Quota, QuotaAccount, Signals,
};

use crate::Random;

/// Small and large bases, and those that have no exact share.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for text in ["100/1s burst 500", "7/3s", "999999937/1s", "1/30d", "18446744073709551557/18446744073709551615ns burst 3"] {
        let base: Quota = text.parse().map_err(|_| fmt::Error)?;
        let options = AdaptiveOptions::new(base).cpu(LoadRule::new()).memory(LoadRule::new());
        let options = options.errors(ErrorRule::new()).pace(PaceRule::new());
        let mut policy = options.build().map_err(|_| fmt::Error)?;
        let mut account = QuotaAccount::every(Duration::from_secs(600), 20_000, Nanos::ZERO);
        let mut random = Random::new(base.capacity());
        let (mut now, mut busy) = (Nanos::ZERO, 0);
        for turn in 0..100 {
            now = now.saturating_add(Duration::from_millis(4_000 + random.below(2_000)));
            // Load comes and goes, and so do errors.
            if random.below(10) == 0 {
                busy = random.below(1_000_001) as u32;
            }
            account.spend(now, random.below(900));
            let errors = random.one_of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            let noise = random.below(50_000) as u32;
            let signals = Signals::default()
                .with_cpu(Load::parts_per_million(busy.saturating_add(noise)))
                .with_memory(Load::parts_per_million(busy / 2))
                .with_errors(errors);
            let signals = account.left(now).map_or(signals, |left| signals.with_quota_left(left));
            if let Some(quota) = policy.evaluate(now, &signals) {
                writeln!(out, "{turn}: {quota}, {:?}", policy.allowed())?;
            }
        }
    }
    Ok(())
}
