//! What the pictures of all subcommands share: a document, its type, its faint grid, and colours that are told apart also by who sees no red or green.

use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Failure = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

/// An SVG document of so many pixels, with what `draw` draws on white.
pub(crate) fn document(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>) -> String {
    let mut document = String::new();
    {
        let area = SVGBackend::with_string(&mut document, size).into_drawing_area();
        // Drawing into a string cannot fail.
        let _ = area.fill(&WHITE).and_then(|()| draw(&area)).and_then(|()| area.present());
    }
    document
}

/// Of so many pixels.
pub(crate) fn font(size: i32) -> (&'static str, i32) {
    ("sans-serif", size)
}

/// At the marks of an axis, behind what is drawn.
pub(crate) fn grid() -> RGBAColor {
    BLACK.mix(0.11)
}

pub(crate) const LIGHT_BLUE: RGBColor = RGBColor(86, 146, 190);
pub(crate) const SKY_BLUE: RGBColor = RGBColor(86, 180, 233);
pub(crate) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(crate) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(crate) const LIGHT_GREEN: RGBColor = RGBColor(170, 215, 200);
pub(crate) const YELLOW: RGBColor = RGBColor(240, 228, 66);
pub(crate) const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub(crate) const VERMILION: RGBColor = RGBColor(213, 94, 0);
pub(crate) const PINK: RGBColor = RGBColor(204, 121, 167);
pub(crate) const VIOLET: RGBColor = RGBColor(120, 60, 160);
pub(crate) const LIGHT_GREY: RGBColor = RGBColor(160, 160, 160);
pub(crate) const DARK_GREY: RGBColor = RGBColor(65, 65, 65);
