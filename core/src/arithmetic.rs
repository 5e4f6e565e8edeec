//! Exact multiplication by a fraction without a division at run time.

/// Multiplies by a fixed fraction below 16 and rounds down, exactly.
///
/// The fraction is held with 124 fractional bits, rounded up. For a factor `x` below 2^60 the error of the product is
/// below 2^-64, and the fractional part of the true product is at most `1 - 1/denominator` with a denominator below
/// 2^64, so the error never carries into the integer part (Granlund and Montgomery, *Division by Invariant Integers using
/// Multiplication*, PLDI 1994). Two 64-bit multiplications, or one where the fraction is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    high: u64,
    low: u64,
    /// The fraction, if it is a whole number, and otherwise 0. A branch that always goes the same way costs nothing, and
    /// the products that it saves stand between reading the clock and the decision.
    whole: u64,
}

impl Fraction {
    /// `numerator / denominator`. The caller makes sure that it is below 16 and the denominator is not 0.
    pub(crate) const fn new(numerator: u128, denominator: u64) -> Self {
        let denominator = denominator as u128;
        let integer = numerator / denominator;
        debug_assert!(integer < 16);
        let rest = numerator % denominator;
        let whole = if rest == 0 { integer as u64 } else { 0 };
        // 124 fractional bits, 64 and then 60 at a time, so that nothing exceeds 128 bits.
        let upper = (rest << 64) / denominator;
        let rest = (rest << 64) % denominator;
        let lower = (rest << 60) / denominator;
        let rest = (rest << 60) % denominator;
        let bits = (integer << 124) | (upper << 60) | lower;
        let bits = if rest == 0 { bits } else { bits + 1 };
        Self { high: (bits >> 64) as u64, low: bits as u64, whole }
    }

    pub(crate) const fn to_words(self) -> [u64; 3] {
        [self.high, self.low, self.whole]
    }

    #[inline(always)]
    pub(crate) const fn from_words([high, low, whole]: [u64; 3]) -> Self {
        Self { high, low, whole }
    }

    /// `floor(x * numerator / denominator)`, exactly, for `x` below 2^60.
    #[inline(always)]
    pub(crate) const fn times(self, x: u64) -> u64 {
        debug_assert!(x >> 60 == 0);
        if self.whole != 0 {
            return x * self.whole;
        }
        (self.product(x) >> 64) as u64
    }

    /// `ceil(x * numerator / denominator)`, exactly, for `x` below 2^60.
    ///
    /// The 64 leading bits after the point are 0 only where the true product is whole: otherwise its fractional part is at
    /// least `1/denominator`, which is above 2^-64.
    #[inline(always)]
    pub(crate) const fn times_up(self, x: u64) -> u64 {
        debug_assert!(x >> 60 == 0);
        if self.whole != 0 {
            return x * self.whole;
        }
        let product = self.product(x);
        (product >> 64) as u64 + (product as u64 != 0) as u64
    }

    /// The product with 64 bits after the point.
    #[inline(always)]
    const fn product(self, x: u64) -> u128 {
        let x = (x << 4) as u128;
        let low = (x * self.low as u128) >> 64;
        x * self.high as u128 + low
    }
}

/// Multiplies by a fixed fraction of any size and rounds down, or one further down: a first guess for exact searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// The 64 leading bits of the fraction, rounded down.
    mantissa: u64,
    /// The fraction is about `mantissa / 2^shift`; at most 127.
    shift: u32,
}

impl Estimate {
    /// `numerator / denominator`. The caller makes sure that neither is 0, that the denominator is below 2^127 and that
    /// the fraction is above 2^-64.
    pub(crate) const fn new(numerator: u64, denominator: u128) -> Self {
        if numerator as u128 == denominator {
            // Low by one for every product but 0, and as quick as any fraction below 1.
            return Self { mantissa: u64::MAX, shift: u64::BITS };
        }
        let mut mantissa = numerator as u128 / denominator;
        let mut rest = numerator as u128 % denominator;
        let mut shift = 0;
        // Long division, a bit at a time, until 64 significant bits are known.
        while mantissa < 1 << 63 {
            rest <<= 1;
            mantissa <<= 1;
            if rest >= denominator {
                rest -= denominator;
                mantissa |= 1;
            }
            shift += 1;
        }
        Self { mantissa: mantissa as u64, shift }
    }

    pub(crate) const fn to_words(self) -> (u64, u64) {
        (self.mantissa, self.shift as u64)
    }

    #[inline(always)]
    pub(crate) const fn from_words(mantissa: u64, shift: u64) -> Self {
        Self { mantissa, shift: shift as u32 }
    }

    /// At most `floor(x * numerator / denominator)`, and for results below 2^62 at least that minus 1; `u64::MAX` where
    /// the product is larger.
    #[inline(always)]
    pub(crate) const fn times(self, x: u64) -> u64 {
        let product = x as u128 * self.mantissa as u128;
        // Nearly every fraction is below 1, where half of the product decides.
        if self.shift >= u64::BITS {
            return ((product >> 64) as u64) >> (self.shift - u64::BITS);
        }
        let product = product >> self.shift;
        if product > u64::MAX as u128 { u64::MAX } else { product as u64 }
    }
}

/// Euclid's greatest common divisor of two numbers that are not both 0.
pub(crate) const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fraction_rounds_down_exactly(
            denominator in 1..=u64::MAX,
            scale in any::<u128>(),
            x in 0..1_u64 << 60,
        ) {
            let numerator = scale % (u128::from(denominator) * 16);
            // x * numerator can exceed 128 bits: compare q and remainder by parts.
            let (integer, rest) = (numerator / u128::from(denominator), numerator % u128::from(denominator));
            let exact = u128::from(x) * integer + u128::from(x) * rest / u128::from(denominator);
            prop_assert_eq!(u128::from(Fraction::new(numerator, denominator).times(x)), exact);
            let is_whole = u128::from(x) * rest % u128::from(denominator) == 0;
            let up = exact + u128::from(!is_whole);
            prop_assert_eq!(u128::from(Fraction::new(numerator, denominator).times_up(x)), up);
        }

        #[test]
        fn estimate_is_low_by_at_most_one(numerator in 1..=u64::MAX, denominator in 1..1_u64 << 62, x in 0..1_u64 << 63) {
            let exact = u128::from(x) * u128::from(numerator) / u128::from(denominator);
            let estimate = u128::from(Estimate::new(numerator, u128::from(denominator)).times(x));
            prop_assert!(estimate <= exact);
            if exact < 1 << 62 {
                prop_assert!(estimate + 1 >= exact, "{} {}", estimate, exact);
            }
        }
    }

    #[test]
    fn estimate_is_low_by_at_most_one_where_its_fraction_is_least() {
        for denominator in [1, (1 << 62) - 1, 1 << 62, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX] {
            let estimate = Estimate::new(1, denominator.into());
            for x in [0, 1, denominator / 2, denominator - 1, denominator, u64::MAX - 1, u64::MAX] {
                let (guess, exact) = (estimate.times(x), x / denominator);
                assert!(guess == exact || guess + 1 == exact, "{x} / {denominator}: {guess}");
            }
        }
    }

    #[test]
    fn fraction_is_exact_where_rounding_is_hardest() {
        for denominator in [1, 2, 3, 7, 1_000_000_007, u64::MAX - 1, u64::MAX] {
            for numerator in [1, 2, u128::from(denominator) - 1, u128::from(denominator) * 16 - 1] {
                let fraction = Fraction::new(numerator, denominator);
                for x in [0, 1, denominator.min((1 << 60) - 1), (1 << 60) - 1, 1 << 59] {
                    let (integer, rest) = (numerator / u128::from(denominator), numerator % u128::from(denominator));
                    let exact = u128::from(x) * integer + u128::from(x) * rest / u128::from(denominator);
                    assert_eq!(u128::from(fraction.times(x)), exact, "{x} * {numerator} / {denominator}");
                    let is_whole = u128::from(x) * rest % u128::from(denominator) == 0;
                    let up = exact + u128::from(!is_whole);
                    assert_eq!(u128::from(fraction.times_up(x)), up, "{x} * {numerator} / {denominator}");
                }
            }
        }
    }
}
