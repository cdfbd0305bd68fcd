//! Medians and extremes.

/// Median and extremes of some values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Median and extremes of some values. `None` without values.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            (values[middle - 1] + values[middle]) / 2.0
        } else {
            values[middle]
        };
        Some(Self { median, min, max })
    }

    /// The same statistics with this amount subtracted from every value.
    #[must_use]
    pub fn less(self, by: f64) -> Self {
        Self { median: self.median - by, min: self.min - by, max: self.max - by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_or_between_the_two_middle_ones() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(spread.less(1.0), Spread { median: 1.0, min: 0.0, max: 2.0 });
    }
}
