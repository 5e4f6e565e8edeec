//! A quota that adapts by any rules, to any measurements at any readings: what holds of every share.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{
    AdaptiveOptions, ErrorRule, Load, LoadRule, Nanos, PaceRule, Quota, QuotaAccount, QuotaLeft, Rate, Share, Signals,
};

#[derive(Arbitrary, Debug)]
struct Input {
    tokens: u64,
    period: u64,
    burst: u64,
    cpu: Option<[u32; 6]>,
    memory: Option<[u32; 6]>,
    errors: Option<([u32; 3], u64, u64, u32)>,
    pace: bool,
    floor: u32,
    fall: u32,
    rise: u32,
    least_change: u32,
    account: Option<(u64, u64, u64)>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
struct Step {
    now: u64,
    advances: bool,
    cpu: Option<u32>,
    memory: Option<u32>,
    errors: u64,
    left: Option<(u64, u64)>,
    spent: u64,
}

/// Any share, from any number.
fn share(number: u32) -> Share {
    Share::parts_per_million(number % 1_000_000 + 1).expect("in range")
}

fn load_rule([high, low, least, most, recovery, weight]: [u32; 6]) -> LoadRule {
    let rule = LoadRule::new().high(share(high)).low(share(low)).cut(share(least), share(most));
    rule.recovery(share(recovery)).weight(share(weight))
}

fuzz_target!(|input: Input| {
    let Ok(rate) = Rate::new(input.tokens, Duration::from_nanos(input.period)) else { return };
    let Ok(base) = Quota::with_burst(rate, input.burst) else { return };
    let mut options = AdaptiveOptions::new(base).floor(share(input.floor)).most_fall(share(input.fall));
    options = options.most_rise(share(input.rise)).least_change(share(input.least_change));
    options = input.cpu.map_or(options, |cpu| options.cpu(load_rule(cpu)));
    options = input.memory.map_or(options, |memory| options.memory(load_rule(memory)));
    if let Some((cuts, least, cool_down, recovery)) = input.errors {
        let rule = ErrorRule::new().cuts(cuts.map(share)).least_errors(least);
        options = options.errors(rule.cool_down(Duration::from_nanos(cool_down)).recovery(share(recovery)));
    }
    if input.pace {
        options = options.pace(PaceRule::new());
    }
    let Ok(mut policy) = options.build() else { return };
    let mut account = input.account.map_or(QuotaAccount::unknown(), |(period, tokens, begin)| {
        QuotaAccount::every(Duration::from_nanos(period), tokens, Nanos::new(begin))
    });
    let (mut now, mut before) = (0_u64, 1_000_000_u32);
    for step in input.steps.iter().take(256) {
        now = if step.advances { now.saturating_add(step.now >> 24) } else { step.now };
        let reading = Nanos::new(now);
        if let Some((tokens, until)) = step.left {
            account.report(reading, QuotaLeft::new(tokens, Duration::from_nanos(until)));
        }
        account.spend(reading, step.spent);
        let mut signals = Signals::default().with_errors(step.errors);
        signals = step.cpu.map_or(signals, |cpu| signals.with_cpu(Load::parts_per_million(cpu)));
        signals = step.memory.map_or(signals, |memory| signals.with_memory(Load::parts_per_million(memory)));
        signals = account.left(reading).map_or(signals, |left| signals.with_quota_left(left));
        let changed = policy.evaluate(reading, &signals);
        let allowed = policy.allowed();
        assert!(allowed.share <= before.saturating_add(share(input.rise).as_parts_per_million()));
        assert!(allowed.share.saturating_add(share(input.fall).as_parts_per_million()) >= before);
        assert!(allowed.share >= share(input.floor).as_parts_per_million().min(before).min(allowed.pace.max(1)));
        assert_eq!(changed.is_some(), allowed.share != before);
        let quota = policy.quota();
        assert_eq!(changed.unwrap_or(quota), quota);
        assert!(quota.capacity() >= 1 && quota.capacity() <= base.capacity());
        assert!(allowed.share < 1_000_000 || quota == base);
        // Never more than the base's rate, and no less than nothing.
        let (scaled, whole) = (quota.rate(), base.rate());
        let product = |tokens: u64, period: u64| u128::from(tokens) * u128::from(period);
        assert!(product(scaled.tokens(), whole.period_nanos()) <= product(whole.tokens(), scaled.period_nanos()));
        before = allowed.share;
    }
});
