//! Core's laws for calls in flight, as one type.

use std::ops::RangeInclusive;

use sluicegate_core::{
    AimdLaw, AimdOptions, ClosedWindow, ConcurrencyLaw, GradientLaw, GradientOptions, LawOptionsError,
};

use super::scenario::{InFlight, InFlightCount, LawName};

#[derive(Clone, Copy, Debug)]
pub(super) enum Law {
    Fixed(u32),
    Aimd(AimdLaw),
    Gradient(GradientLaw),
}

impl Law {
    pub(super) fn new(in_flight: &InFlight) -> Result<Self, LawOptionsError> {
        match in_flight {
            InFlight::Fixed(limit) => Ok(Self::Fixed(*limit)),
            InFlight::Law(given) => {
                let count = |number: Option<InFlightCount>, default: u32| {
                    number.map_or(default, |number| u32::try_from(number.0).unwrap_or(u32::MAX))
                };
                let (least, initial, most) =
                    (count(given.least, LEAST), count(given.initial, INITIAL), count(given.most, MOST));
                match given.law {
                    LawName::Aimd => AimdOptions::new().limits(least, initial, most).build().map(Self::Aimd),
                    LawName::Gradient => {
                        GradientOptions::new().limits(least, initial, most).build().map(Self::Gradient)
                    }
                }
            }
        }
    }
}

impl ConcurrencyLaw for Law {
    fn limit(&self) -> u32 {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Aimd(law) => law.limit(),
            Self::Gradient(law) => law.limit(),
        }
    }

    fn bounds(&self) -> RangeInclusive<u32> {
        match self {
            Self::Fixed(limit) => *limit..=*limit,
            Self::Aimd(law) => law.bounds(),
            Self::Gradient(law) => law.bounds(),
        }
    }

    fn update(&mut self, window: &ClosedWindow) -> u32 {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Aimd(law) => law.update(window),
            Self::Gradient(law) => law.update(window),
        }
    }
}

/// Core's own.
const LEAST: u32 = 1;
const INITIAL: u32 = 10;
const MOST: u32 = 1_000;
