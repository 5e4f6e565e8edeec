//! The page of the record about accuracy.

use alloc::collections::BTreeMap;
use core::fmt::Write as _;

use super::contestants::{Contestant, OURS, RIVALS};
use super::grid::{GRIDS, Grid};
use super::hints::{HintError, hint_error};
use super::other_laws::{self, OTHERS};
use super::patterns::{self, Kind};
use super::{Score, score};
use crate::record;

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// Worst scores over all patterns, by grid and contestant.
    by_grid: Vec<(&'static str, Vec<Option<Score>>)>,
    /// What was handed out to who asked without a pause, and how much should have been.
    without_pause: Vec<(&'static str, Vec<Option<Score>>)>,
    /// Worst scores over all grids, by pattern and contestant.
    by_pattern: BTreeMap<Kind, Vec<Score>>,
    hints: Vec<(&'static str, Vec<Option<HintError>>)>,
    others: Vec<(&'static str, Vec<other_laws::Deviation>)>,
    /// What of ours was not exact, if anything.
    failures: Vec<String>,
}

impl Accuracy {
    /// Measures with patterns of about `size` tokens.
    pub fn measure(size: u64) -> Self {
        let contestants: Vec<Contestant> = OURS.into_iter().chain(RIVALS).collect();
        let mut all = Self {
            by_grid: Vec::new(),
            without_pause: Vec::new(),
            by_pattern: BTreeMap::new(),
            hints: Vec::new(),
            others: Vec::new(),
            failures: Vec::new(),
        };
        for grid in &GRIDS {
            all.grid(grid, &contestants, size);
        }
        for grid in &other_laws::GRIDS {
            let deviations: Vec<_> = OTHERS.iter().map(|other| other_laws::worst(other, grid, size / 4)).collect();
            for (other, deviation) in OTHERS.iter().zip(&deviations) {
                if deviation.over + deviation.under + deviation.early > 0 || deviation.late > 1 {
                    all.failures.push(format!("{} {}: {deviation:?}", other.name, grid.text));
                }
            }
            all.others.push((grid.text, deviations));
        }
        all
    }

    /// What of ours was not exact: empty, if the record is to stand.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    fn grid(&mut self, grid: &Grid, contestants: &[Contestant], size: u64) {
        let mut row: Vec<Option<Score>> = vec![None; contestants.len()];
        let mut without_pause = vec![None; contestants.len()];
        for (kind, polls) in patterns::all(grid, size) {
            let patterns = self.by_pattern.entry(kind).or_insert_with(|| vec![Score::default(); contestants.len()]);
            for (who, contestant) in contestants.iter().enumerate() {
                let Some(score) = score(contestant, grid, &polls) else { continue };
                row[who] = Some(row[who].unwrap_or_default().worse(score));
                patterns[who] = patterns[who].worse(score);
                if kind == Kind::Steady(patterns::WITHOUT_PAUSE) {
                    without_pause[who] = Some(score);
                }
                if who < OURS.len() && !score.is_exact() {
                    self.failures.push(format!("{} {} {kind}: {score:?}", contestant.name, grid.text));
                }
            }
        }
        self.by_grid.push((grid.text, row));
        self.without_pause.push((grid.text, without_pause));
        let hints: Vec<_> = HINTING.iter().map(|contestant| hint_error(contestant, grid)).collect();
        if hints[0].is_none_or(|error| error.early + error.late + error.off > 0) {
            self.failures.push(format!("{}'s hints, {}: {:?}", HINTING[0].name, grid.text, hints[0]));
        }
        self.hints.push((grid.text, hints));
    }

    /// The page.
    pub fn page(&self) -> String {
        let mut page = format!(
            "# Accuracy\n\nEvery limiter is asked the same at the same readings, and each answer is judged by an ideal bucket in whole numbers \
             (`src/accuracy/ideal.rs`), which loses what the limiter handed out.\n\n\
             - *over*: the most tokens that any span of time saw beyond the burst and what came within it. By the definition of a token bucket 0.\n\
             In brackets how much too early the worst admission was.\n\
             - *under*: the most whole tokens that were there when a request for no more was denied; in brackets how many of its requests were denied so.\n\n\
             Where a rate has no unit that counts both its tokens and nanoseconds in 63 bits for 30 years, a quarter of a nanosecond is forgiven everybody.\n\n{}\n",
            record::conditions("accuracy")
        );
        self.write_grids(&mut page);
        self.write_sums(&mut page);
        self.write_patterns(&mut page);
        self.write_hints(&mut page);
        self.write_others(&mut page);
        page
    }

    fn write_grids(&self, page: &mut String) {
        page.push_str("## By rate\n\nThe worst over all patterns, faults and uptimes below.\n\n| |");
        heads(page, "rate");
        for (text, scores) in &self.by_grid {
            let ours = scores[..OURS.len()].iter().map(|score| score.unwrap_or_default());
            let _ = write!(page, "| {text} | {} |", cell(Some(ours.fold(Score::default(), Score::worse))));
            for score in &scores[OURS.len()..] {
                let _ = write!(page, " {} |", cell(*score));
            }
            page.push('\n');
        }
    }

    fn write_sums(&self, page: &mut String) {
        page.push_str(
            "\n## What is handed out in all\n\nAsked every nanosecond, or a thousand times in the time of a token: what was handed out after the first burst, of \
             what came.\n\n| |",
        );
        heads(page, "rate");
        for ((text, scores), grid) in self.without_pause.iter().zip(&GRIDS) {
            let _ = write!(page, "| {text} |");
            for score in &scores[OURS.len() - 1..] {
                let _ = match score {
                    None => write!(page, " cannot say this |"),
                    Some(score) if score.admitted == score.exact => write!(page, " all |"),
                    Some(score) => {
                        let beyond = |tokens: u64| tokens as f64 - f64::from(grid.burst);
                        write!(page, " {:.2} % |", 100.0 * beyond(score.admitted) / beyond(score.exact))
                    }
                };
            }
            page.push('\n');
        }
    }

    fn write_patterns(&self, page: &mut String) {
        page.push_str("\n## By pattern\n\nThe worst over all rates.\n\n| |");
        heads(page, "pattern");
        for (kind, scores) in &self.by_pattern {
            let clock = match kind {
                Kind::Steady(name) => (*name).into(),
                Kind::Faulty(name) => format!("clock {name}"),
                Kind::Late(name) => format!("all of them, on a clock that began {name} ago"),
            };
            let ours = scores[..OURS.len()].iter().copied().fold(Score::default(), Score::worse);
            let _ = write!(page, "| {clock} | {} |", cell(Some(ours)));
            for score in &scores[OURS.len()..] {
                let _ = write!(page, " {} |", cell(Some(*score)));
            }
            page.push('\n');
        }
    }

    fn write_hints(&self, page: &mut String) {
        page.push_str(
            "\n## When to come back\n\nAfter a denial each says in how many nanoseconds to come back. *early*: who comes then is denied, \
             and would be admitted only so much later. *late*: it would have been admitted so much before. *off*: how far the hint is from the \
             ideal bucket's instant. Worst cases, in nanoseconds; for one token, half a burst and a whole one.\n\n| rate |",
        );
        for contestant in HINTING {
            let _ = write!(page, " {} |", contestant.name);
        }
        page.push_str("\n|---|");
        HINTING.iter().for_each(|_| page.push_str("--:|"));
        page.push('\n');
        for (text, hints) in &self.hints {
            let _ = write!(page, "| {text} |");
            for hint in hints {
                let _ = match hint {
                    None => write!(page, " none |"),
                    Some(HintError { early: 0, late: 0, off: 0, .. }) => write!(page, " 0 |"),
                    Some(HintError { early, late, off, .. }) => {
                        write!(page, " early {early}, late {late}, off {off} |")
                    }
                };
            }
            page.push('\n');
        }
    }

    fn write_others(&self, page: &mut String) {
        page.push_str("\n## Other laws\n\nOurs that are no token bucket, beside models of their own laws: requests admitted or denied wrongly.\n\n");
        for other in OTHERS {
            let _ = writeln!(
                page,
                "- {}: {}{}",
                other.name,
                other.law,
                if other.knows_late_readings { "" } else { "; no late readings" }
            );
        }
        page.push_str("\n| limit |");
        OTHERS.iter().for_each(|other| {
            let _ = write!(page, " {} |", other.name);
        });
        page.push_str("\n|---|");
        OTHERS.iter().for_each(|_| page.push_str("--:|"));
        page.push('\n');
        for (text, deviations) in &self.others {
            let _ = write!(page, "| {text} |");
            for other_laws::Deviation { asked, over, under, early, late } in deviations {
                let _ = write!(page, " {over} over, {under} under of {asked}");
                if early + late > 0 {
                    let _ = write!(page, "; {early} ns early, {late} ns late");
                }
                page.push_str(" |");
            }
            page.push('\n');
        }
    }
}

/// Who says when to come back.
const HINTING: [Contestant; 4] = [OURS[0], RIVALS[1], RIVALS[2], RIVALS[3]];

fn heads(page: &mut String, what: &str) {
    page.truncate(page.len() - 3);
    let _ = write!(page, "| {what} | Sluicegate |");
    for rival in RIVALS {
        let _ = write!(page, " {} |", rival.name);
    }
    page.push_str("\n|---|--:|");
    RIVALS.iter().for_each(|_| page.push_str("--:|"));
    page.push('\n');
}

/// A score as a cell of a table; `0` for what is exact.
pub fn cell(score: Option<Score>) -> String {
    let Some(score) = score else { return "cannot say this".into() };
    if score.is_exact() {
        return "0".into();
    }
    let mut text = String::new();
    if score.over > 0 {
        let _ = write!(text, "over {} ({} ns)", score.over, score.early);
    }
    if score.wrong_denials > 0 {
        text.push_str(if text.is_empty() { "" } else { ", " });
        let share = 100.0 * score.wrong_denials as f64 / score.asked as f64;
        let _ = write!(text, "under {} ({share:.2} %)", score.withheld);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_show_what_is_wrong() {
        let exact = Score { asked: 10, admitted: 5, exact: 5, ..Score::default() };
        assert_eq!(cell(Some(exact)), "0");
        let wrong = Score { admitted: 6, over: 1, early: 3, withheld: 2, wrong_denials: 1, ..exact };
        assert_eq!(cell(Some(wrong)), "over 1 (3 ns), under 2 (10.00 %)");
        assert_eq!(cell(Some(Score { over: 0, ..wrong })), "under 2 (10.00 %)");
        assert_eq!(cell(None), "cannot say this");
    }
}
