//! How much is allowed under load.

use super::{ALL, recovered};
use crate::Share;

/// How busy something is: a processor, memory; from nothing to all of it.
///
/// ```
/// use sluicegate_core::Load;
/// assert_eq!(Load::percent(80), Load::parts_per_million(800_000));
/// assert_eq!(Load::percent(250), Load::percent(100));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(u32);

impl Load {
    /// So many hundredths; more than all is all.
    pub const fn percent(percent: u32) -> Self {
        Self::parts_per_million(percent.saturating_mul(ALL / 100))
    }

    /// So many millionths; more than all is all.
    pub const fn parts_per_million(parts: u32) -> Self {
        Self(if parts < ALL { parts } else { ALL })
    }

    /// The millionths.
    pub const fn as_parts_per_million(self) -> u32 {
        self.0
    }
}

/// Cuts what is allowed while the load is high, holds it while the load is between, and gives it back step by step while the load is low.
///
/// The load that counts is an exponential moving average: each evaluation moves it by [`weight`](Self::weight) of the way to what was
/// measured. At [`high`](Self::high) the least is cut, at full load the most, and between in proportion. What was cut stays cut until the load
/// is at [`low`](Self::low) or below. An evaluation without a measurement changes nothing.
///
/// The defaults: from 80 % on 25 to 50 % are cut, from 50 % down 5 % of the base come back at each evaluation, and the weight is 40 %.
///
/// ```
/// use sluicegate_core::{Load, LoadRule};
///
/// let mut rule = LoadRule::new();
/// assert_eq!(rule.evaluate(Some(Load::percent(100))), 500_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRule {
    high: Share,
    low: Share,
    least_cut: Share,
    most_cut: Share,
    recovery: Share,
    weight: Share,
    /// The average, in `SCALE` parts of a millionth.
    average: Option<u64>,
    /// Millionths of the base.
    allowed: u32,
}

impl LoadRule {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            high: Share::known_percent(80),
            low: Share::known_percent(50),
            least_cut: Share::known_percent(25),
            most_cut: Share::known_percent(50),
            recovery: Share::known_percent(5),
            weight: Share::known_percent(40),
            average: None,
            allowed: ALL,
        }
    }

    /// From which load on something is cut. One that is not above [`low`](Self::low) is taken as just above it.
    pub const fn high(self, high: Share) -> Self {
        Self { high, ..self }
    }

    /// Up to which load something comes back.
    pub const fn low(self, low: Share) -> Self {
        Self { low, ..self }
    }

    /// What is cut at [`high`](Self::high), and at full load; of two the smaller one is the least.
    pub const fn cut(self, least: Share, most: Share) -> Self {
        let is_in_order = least.as_parts_per_million() <= most.as_parts_per_million();
        let (least_cut, most_cut) = if is_in_order { (least, most) } else { (most, least) };
        Self { least_cut, most_cut, ..self }
    }

    /// How much of the base comes back at each evaluation.
    pub const fn recovery(self, recovery: Share) -> Self {
        Self { recovery, ..self }
    }

    /// How much of the way to what was measured the average goes at each evaluation; all of it smooths nothing.
    pub const fn weight(self, weight: Share) -> Self {
        Self { weight, ..self }
    }

    /// The average, rounded to a millionth, once something was measured: it is what the thresholds are compared with.
    pub fn average(&self) -> Option<Load> {
        self.average.map(|average| Load(millionths(average)))
    }

    /// Goes by what was measured, and tells how many millionths of the base are allowed.
    pub fn evaluate(&mut self, measured: Option<Load>) -> u32 {
        let Some(measured) = measured else { return self.allowed };
        let measured = u64::from(measured.0) * SCALE;
        let average = match self.average {
            None => measured,
            Some(average) if measured >= average => average + self.weight.of(measured - average),
            Some(average) => average - self.weight.of(average - measured),
        };
        self.average = Some(average);
        let (low, high) = (self.low.as_parts_per_million(), self.high.as_parts_per_million());
        let high = high.max(low.saturating_add(1));
        // To a millionth: an average comes ever closer to a load that stays, and never gets there.
        let rounded = millionths(average);
        if rounded <= low {
            self.allowed = recovered(self.allowed, self.recovery);
        } else if rounded >= high {
            self.allowed = self.allowed.min(ALL - self.cut_at(average, u64::from(high) * SCALE));
        }
        self.allowed
    }

    /// The millionths that are cut at an average of `high` or more.
    fn cut_at(&self, average: u64, high: u64) -> u32 {
        let (least, most) = (self.least_cut.as_parts_per_million(), self.most_cut.as_parts_per_million());
        let (above, range) = (average.saturating_sub(high), (u64::from(ALL) * SCALE).saturating_sub(high));
        let more = (u128::from(most - least) * u128::from(above)).checked_div(range.into());
        // No more than `most - least`; at a `high` of all, the average is all and so is the cut.
        more.map_or(most, |more| least + more as u32)
    }
}

impl Default for LoadRule {
    fn default() -> Self {
        Self::new()
    }
}

/// An average, rounded to a millionth. It is a load in SCALE parts, so that it fits.
const fn millionths(average: u64) -> u32 {
    ((average + SCALE / 2) / SCALE) as u32
}

/// The average is kept in so many parts of a millionth, so that small steps are not lost.
const SCALE: u64 = 1 << 20;
