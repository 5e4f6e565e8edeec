//! Waiting for all levels of a hierarchy.

#[cfg(feature = "alloc")]
use sluicegate_core::OwnedHierarchy;
use sluicegate_core::{Admitted, Denied, DeniedBy, Hierarchy, Holding, Nanos};

use crate::grant::Grantor;

/// What a queue asks of a hierarchy, of which `levels` makes one that refers to them.
macro_rules! hierarchical {
    ($(#[$meta:meta])* $hierarchy:ty, $levels:path) => {
        $(#[$meta])*
        impl<const N: usize, L: Holding + ?Sized> Grantor for $hierarchy {
            type Cost = [u64; N];
            type Grant = [Admitted; N];
            type Denial = DeniedBy;
            const HELD_IS_NOT_REFILLED: bool = true;

            #[inline]
            fn take_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
                $levels(self).take_at(now, costs)
            }

            fn hold_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
                $levels(self).hold_at(now, costs)
            }

            fn keep(&self, costs: [u64; N], grant: &[Admitted; N]) {
                $levels(self).keep(costs, grant);
            }

            fn peek_at(&self, now: Nanos, costs: [u64; N]) -> Result<(), DeniedBy> {
                $levels(self).peek_at(now, costs).map(drop)
            }

            fn peek_hold_at(&self, now: Nanos, costs: [u64; N]) -> Result<(), DeniedBy> {
                $levels(self).peek_hold_at(now, costs).map(drop)
            }

            fn earliest_at(&self, now: Nanos, totals: [u128; N]) -> Option<Nanos> {
                $levels(self).earliest_at(now, totals)
            }

            /// Of a wait that would be too long, it names the level that is the last to have enough for those ahead and the waiter; of a
            /// queue that is full or closed, none.
            fn denial(&self, now: Nanos, totals: [u128; N], denied: Denied) -> DeniedBy {
                let levels = $levels(self);
                let latest = match denied {
                    Denied::RateLimited { .. } => levels.latest_at(now, totals),
                    _ => None,
                };
                match latest.and_then(|(level, _)| Some((level, levels.levels().get(level)?.name()))) {
                    Some((level, name)) => DeniedBy::new(level, name, denied),
                    None => DeniedBy::new(N, "", denied),
                }
            }

            fn let_go(&self, _at: Nanos, costs: [u64; N], grant: [Admitted; N]) {
                $levels(self).let_go(costs, &grant);
            }

            fn give_back(&self, costs: [u64; N], grant: [Admitted; N]) {
                $levels(self).give_back(costs, &grant);
            }

            #[inline]
            fn tell(&self, now: Nanos, costs: [u64; N], decision: Result<&[Admitted; N], DeniedBy>) {
                $levels(self).tell(now, costs, decision);
            }
        }
    };
}

hierarchical! {
    /// What a waiter has not fetched is held at every level, and leaves no trace at any when it leaves.
    Hierarchy<'_, N, L>, itself
}

#[cfg(feature = "alloc")]
hierarchical! {
    /// As a [`Hierarchy`] that refers to its levels.
    OwnedHierarchy<N, L>, OwnedHierarchy::hierarchy
}

fn itself<'h, const N: usize, L: Holding + ?Sized>(hierarchy: &'h Hierarchy<'h, N, L>) -> Hierarchy<'h, N, L> {
    *hierarchy
}
