//! What is written is read back.

use core::time::Duration;
use std::time::SystemTime;

use http::HeaderMap;
use proptest::prelude::*;
use sluicegate_http::{
    Denied, LONGEST_WAIT, Limit, LimitHeaders, ManualClock, Quota, QuotaUnit, Rate, ServiceLimits, TokenBucket,
};

proptest! {
    #[test]
    fn what_a_bucket_writes_is_read_back(
        name in "[ -~]{1,20}",
        unit in prop_oneof![Just(None), "[ -~]{1,20}".prop_map(Some)],
        partition_key in prop_oneof![Just(None), prop::collection::vec(any::<u8>(), 0..40).prop_map(Some)],
        (tokens, period) in (1..1_000_u64, 1..10_000_000_000_000_u64),
        burst in 1..100_000_u64,
        steps in prop::collection::vec((0..20_000_000_000_u64, 0..2_000_u64), 1..20),
    ) {
        let quota = Quota::with_burst(Rate::new(tokens, Duration::from_nanos(period)).unwrap(), burst).unwrap();
        let mut said = LimitHeaders::new(&name, Limit::Quota(quota)).unwrap();
        if let Some(unit) = &unit {
            said = said.with_quota_unit(&QuotaUnit::from(unit.as_str())).unwrap();
        }
        let bucket = TokenBucket::with_clock(quota, ManualClock::new());
        for (time, cost) in steps {
            bucket.clock().advance(Duration::from_nanos(time));
            let decision = bucket.try_acquire(cost);
            let mut headers = HeaderMap::new();
            match &partition_key {
                Some(key) => said.write_partition(&mut headers, decision, bucket.inspect(), key),
                None => said.write(&mut headers, decision, bucket.inspect()),
            }
            let read = ServiceLimits::try_read(&headers, SystemTime::UNIX_EPOCH).unwrap();
            prop_assert_eq!(&read, &ServiceLimits::read(&headers, SystemTime::UNIX_EPOCH));
            prop_assert_eq!(read.limits.len(), 1, "limit and policy are one");
            let limit = &read.limits[0];
            prop_assert_eq!(limit.name.as_deref(), Some(name.as_str()));
            prop_assert_eq!(&limit.partition_key, &partition_key);
            prop_assert_eq!(limit.quota_unit.as_str(), unit.as_deref().unwrap_or("requests"));
            let level = bucket.inspect().level;
            prop_assert_eq!(limit.remaining, Some(level));
            if let (Some(quota), Some(window)) = (limit.quota, limit.window) {
                prop_assert_eq!(u128::from(quota) * u128::from(period), u128::from(tokens) * window.as_nanos());
            }

            let until_reset = limit.until_reset.unwrap();
            // In other words than the crate's: by which whole second so many tokens have come.
            let has_come = |seconds: u64| u128::from(seconds) * 1_000_000_000 * u128::from(tokens) / u128::from(period);
            let missing = u128::from(burst - level);
            match decision {
                Err(Denied::RateLimited { retry_after }) => {
                    prop_assert_eq!(read.retry_after, Some(until_reset), "both times are one");
                    prop_assert!(until_reset >= retry_after.min(LONGEST_WAIT));
                    prop_assert!(until_reset - retry_after.min(LONGEST_WAIT) < Duration::from_secs(1));
                    prop_assert!(until_reset >= Duration::from_secs(1));
                }
                _ if until_reset == LONGEST_WAIT => prop_assert!(has_come(LONGEST_WAIT.as_secs() - 1) < missing),
                _ if missing == 0 => prop_assert_eq!(until_reset, Duration::ZERO),
                _ => {
                    prop_assert!(has_come(until_reset.as_secs()) >= missing);
                    prop_assert!(has_come(until_reset.as_secs() - 1) < missing);
                }
            }
        }
    }
}
