//! Plots of a bench's rows as SVG: time per packet (or to compile) over what varies.

use std::collections::BTreeMap;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::definition::{Axis, Definition, Kind};
use crate::report::Row;

/// Size in pixels.
const SIZE: (u32, u32) = (860, 420);
/// Values that differ by more than this factor are drawn on a logarithmic axis.
const LOGARITHMIC: f64 = 25.0;

/// Something that may vary: its name, its axis, its value in a row.
type Varying = (&'static str, Axis, fn(&Row) -> u64);

/// A curve: its name and its points.
type Curves = BTreeMap<String, Vec<(f64, f64)>>;

/// An SVG element; `None` when there is nothing to draw.
#[must_use]
pub fn plot(definition: &Definition, rows: &[Row]) -> Option<String> {
    let curves = curves(definition, rows);
    let points = || curves.values().flatten();
    let x = Span::of(points().map(|point| point.0))?;
    let y = Span::of(points().map(|point| point.1))?;
    let labels = (x_label(definition.axis), y_label(definition.kind));
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = match (x.logarithmic(), y.logarithmic()) {
        (true, true) => draw(&root, &curves, x.log(), y.log(), labels),
        (true, false) => draw(&root, &curves, x.log(), y.linear(), labels),
        (false, true) => draw(&root, &curves, x.linear(), y.log(), labels),
        (false, false) => draw(&root, &curves, x.linear(), y.linear(), labels),
    };
    drop(root);
    drawn.ok().map(|()| svg)
}

/// Curves by engine, and by whatever else varies.
fn curves(definition: &Definition, rows: &[Row]) -> Curves {
    let varies = |value: fn(&Row) -> u64| rows.iter().any(|row| value(row) != value(&rows[0]));
    let beside: [Varying; 4] = [
        ("functions", Axis::Functions, |row| row.functions as u64),
        ("rules", Axis::Rules, |row| row.rules as u64),
        ("flows", Axis::Flows, |row| row.flows),
        ("bytes", Axis::FrameBytes, |row| row.frame_bytes as u64),
    ];
    let mut curves = Curves::new();
    for row in rows {
        let mut name = row.engine.clone();
        for (what, axis, value) in beside {
            if axis != definition.axis && varies(value) {
                name.push_str(&format!(", {} {what}", value(row)));
            }
        }
        if varies(|row| row.train) {
            name.push_str(&format!(", trains of {}", row.train));
        }
        let x = beside.iter().find(|(_, axis, _)| *axis == definition.axis);
        let x = x.map_or(0, |(_, _, value)| value(row)) as f64;
        let y = match definition.kind {
            Kind::Speed => row.ns_per_packet_median,
            Kind::Compile => row.compile_ms,
        };
        if let Some(y) = y.filter(|y| y.is_finite()) {
            curves.entry(name).or_default().push((x, y.max(0.1)));
        }
    }
    for points in curves.values_mut() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    curves
}

fn x_label(axis: Axis) -> &'static str {
    match axis {
        Axis::Functions => "functions",
        Axis::Rules => "rules",
        Axis::Flows => "flows",
        Axis::FrameBytes => "frame size (bytes)",
    }
}

fn y_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Speed => "ns per packet",
        Kind::Compile => "ms to compile",
    }
}

/// The least and the greatest value on an axis.
#[derive(Clone, Copy)]
struct Span {
    min: f64,
    max: f64,
}

impl Span {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        values.fold(None, |span: Option<Span>, value| {
            let span = span.unwrap_or(Span { min: value, max: value });
            Some(Span { min: span.min.min(value), max: span.max.max(value) })
        })
    }

    fn logarithmic(self) -> bool {
        self.min > 0.0 && self.max / self.min > LOGARITHMIC
    }

    fn log(self) -> impl AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>> {
        (self.min * 0.8..self.max * 1.25).log_scale()
    }

    fn linear(self) -> std::ops::Range<f64> {
        0.0..self.max.max(0.1) * 1.08
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw<'a, X, Y>(root: &Area<'a>, curves: &Curves, x: X, y: Y, labels: (&str, &str)) -> Drawn
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)
        .map_err(text)?;
    chart
        .configure_mesh()
        .x_desc(labels.0)
        .y_desc(labels.1)
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(text)?;
    for (number, (name, points)) in curves.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))
            .map_err(text)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        let dots = points.iter().map(|point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(dots).map_err(text)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .draw()
        .map_err(text)?;
    root.present().map_err(text)
}

/// An error's text: the error itself borrows what is drawn on.
fn text(why: impl std::fmt::Display) -> Box<dyn std::error::Error> {
    why.to_string().into()
}

/// A number on an axis: no exponent, no needless decimals.
fn plain(value: &f64) -> String {
    if value.fract().abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        let text =
            "summary = ''\naxis = 'flows'\nfloor = 'touch'\nchain = ''\n[[traffic]]\n[[sweep]]\n";
        Definition::parse("x", text).unwrap()
    }

    fn row(engine: &str, flows: u64, train: u64, ns: Option<f64>) -> Row {
        let engine = engine.to_owned();
        Row { flows, train, engine, ns_per_packet_median: ns, ..crate::html::tests::row() }
    }

    #[test]
    fn what_varies_beside_the_axis_makes_curves_of_its_own() {
        let rows =
            [row("a", 10, 1, Some(2.0)), row("a", 1, 1, Some(1.0)), row("a", 10, 8, Some(3.0))];
        let curves = curves(&definition(), &rows);
        assert_eq!(curves["a, trains of 1"], [(1.0, 1.0), (10.0, 2.0)]);
        assert_eq!(curves["a, trains of 8"], [(10.0, 3.0)]);
    }

    #[test]
    fn plot_is_svg_with_its_labels_and_nothing_without_values() {
        let rows = [row("synth", 1, 1, Some(10.0)), row("synth", 1_000_000, 1, Some(900.0))];
        let svg = plot(&definition(), &rows).unwrap();
        assert!(svg.trim_start().starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for label in ["flows", "ns per packet", "synth"] {
            assert!(svg.contains(label), "{label}");
        }
        assert_eq!(plot(&definition(), &[row("a", 1, 1, None)]), None);
    }
}
