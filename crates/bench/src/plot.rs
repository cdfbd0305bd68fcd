//! Plots of a bench's rows as SVG: times against the quantity that the bench varies.

use std::collections::{BTreeMap, BTreeSet};

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::definition::{Axis, Definition, Kind};
use crate::report::Row;

/// Width in pixels: of the plot alone, and with its legend.
const WIDTH: (u32, u32) = (820, 1160);
/// Least height of a plot, and height of a line of the legend, in pixels.
const HEIGHT: (u32, u32) = (420, 20);
/// Text on axes and in the legend.
const FONT: (&str, u32) = ("sans-serif", 13);
/// Flow times below this are drawn as this (ns), because the clock cannot tell them apart.
const LEAST_NS: f64 = 10.0;
/// An axis is logarithmic if its values differ by more than this factor.
const LOGARITHMIC: f64 = 25.0;

/// A quantity that may vary: its name, its axis, and its value in a row.
type Varying = (&'static str, Axis, fn(&Row) -> u64);

/// The name of a curve: its engine, and its values of the other quantities that vary.
type Name = (String, String);
/// The points of each curve.
type Curves = BTreeMap<Name, Vec<(f64, f64)>>;

/// Colours of engines, from the palette of Okabe and Ito, which colour-blind readers can
/// distinguish.
const ENGINES: [(&str, RGBColor); 6] = [
    ("floor_touch", RGBColor(0xaa, 0xaa, 0xaa)),
    ("floor_flow", RGBColor(0x55, 0x55, 0x55)),
    ("reference", RGBColor(0x00, 0x9e, 0x73)),
    ("sequential", RGBColor(0x00, 0x72, 0xb2)),
    ("synth", RGBColor(0xd5, 0x5e, 0x00)),
    ("fused", RGBColor(0xcc, 0x79, 0xa7)),
];
/// Colours of other engines.
const OTHERS: [RGBColor; 3] =
    [RGBColor(0xe6, 0x9f, 0x00), RGBColor(0x56, 0xb4, 0xe9), RGBColor(0x88, 0x22, 0x55)];
/// Lengths of dashes and of the gaps between them, in the order of the other quantities of curves.
const DASHES: [(u32, u32); 4] = [(1, 0), (8, 5), (2, 4), (14, 3)];

/// A plot as an SVG element; `None` if there is nothing to draw.
#[must_use]
pub fn plot(definition: &Definition, rows: &[Row]) -> Option<String> {
    let curves = curves(definition, rows);
    let points = || curves.values().flatten();
    let x = Span::of(points().map(|point| point.0))?;
    let y = Span::of(points().map(|point| point.1))?;
    let labels = labels(definition);
    let mut svg = String::new();
    let lines = u32::try_from(curves.len()).unwrap_or(u32::MAX).saturating_add(2);
    let size = (WIDTH.1, HEIGHT.0.max(lines.saturating_mul(HEIGHT.1).min(4000)));
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let shares = definition.kind == Kind::FlowTime;
    let drawn = match (x.logarithmic(), y.logarithmic() && !shares) {
        (true, true) => draw(&root, &curves, x.log(), y.log(), labels),
        (true, false) => draw(&root, &curves, x.log(), y.linear(), labels),
        (false, true) => draw(&root, &curves, x.linear(), y.log(), labels),
        (false, false) => draw(&root, &curves, x.linear(), y.linear(), labels),
    };
    drop(root);
    drawn.ok().map(|()| svg)
}

/// The curves: one for each engine and each combination of the other quantities that vary.
fn curves(definition: &Definition, rows: &[Row]) -> Curves {
    let varies = |value: fn(&Row) -> u64| rows.iter().any(|row| value(row) != value(&rows[0]));
    let beside: [Varying; 5] = [
        ("functions", Axis::Functions, |row| row.functions as u64),
        ("rules", Axis::Rules, |row| row.rules as u64),
        ("flows", Axis::Flows, |row| row.flows),
        ("bytes", Axis::FrameBytes, |row| row.frame_bytes as u64),
        ("‰ new", Axis::NewPerMille, |row| row.new_per_mille),
    ];
    let mut curves = Curves::new();
    for row in rows {
        let mut name = String::new();
        let mut say = |text: String| {
            let comma = if name.is_empty() { "" } else { ", " };
            name += &format!("{comma}{text}");
        };
        for (what, axis, value) in beside {
            if axis != definition.axis && varies(value) {
                say(format!("{} {what}", value(row)));
            }
        }
        if rows.iter().any(|one| one.chain != rows[0].chain) {
            say(row.chain.clone());
        }
        if let Some(mix) = row.mix.as_ref().filter(|_| definition.mix.len() > 1) {
            say(mix.clone());
        }
        if varies(|row| row.train) {
            say(format!("trains of {}", row.train));
        }
        let x = beside.iter().find(|(_, axis, _)| *axis == definition.axis);
        let x = x.map_or(0, |(_, _, value)| value(row)) as f64;
        if let Some(time) = &row.flow_time {
            let us = |ns: f64| ns.max(LEAST_NS) / 1e3;
            let point = |(percent, ns): &(u32, f64)| (us(*ns), f64::from(*percent));
            let points = time.percentiles_ns.iter().map(point);
            curves.entry((row.engine.clone(), name)).or_default().extend(points);
            continue;
        }
        let y = match definition.kind {
            Kind::Speed | Kind::Once => row.ns_per_packet_median,
            Kind::Compile => row.compile_ms,
            Kind::Memory => row.resident_bytes.map(|bytes| bytes as f64 / 1_048_576.0),
            Kind::FlowTime => None,
        };
        if let Some(y) = y.filter(|y| y.is_finite()) {
            curves.entry((row.engine.clone(), name)).or_default().push((x, y.max(0.1)));
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
        Axis::NewPerMille => "packets of a thousand that begin a flow",
    }
}

/// Labels of the x axis and the y axis. Flow times are drawn as a distribution over the flows.
fn labels(definition: &Definition) -> (&'static str, &'static str) {
    let x = x_label(definition.axis);
    match definition.kind {
        Kind::Speed | Kind::Once => (x, "ns per packet"),
        Kind::Compile => (x, "ms to compile"),
        Kind::Memory => (x, "most memory (MiB)"),
        Kind::FlowTime => ("time of a flow (µs)", "flows (%)"),
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
    let (area, legend) = root.split_horizontally(WIDTH.0);
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)
        .map_err(text)?;
    chart
        .configure_mesh()
        .x_desc(labels.0)
        .y_desc(labels.1)
        .axis_desc_style(FONT)
        .label_style(FONT)
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(text)?;
    for (number, ((engine, beside), points)) in curves.iter().enumerate() {
        let (color, dash) = look(curves, engine, beside);
        let style = color.stroke_width(2);
        let dots = points.iter().map(|point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(dots).map_err(text)?;
        let y = 24 + i32::try_from(number).unwrap_or(0) * HEIGHT.1 as i32;
        let key = [(8, y), (48, y)];
        if dash.1 == 0 {
            chart.draw_series(LineSeries::new(points.iter().copied(), style)).map_err(text)?;
            legend.draw(&PathElement::new(key, style)).map_err(text)?;
        } else {
            let line = DashedLineSeries::new(points.iter().copied(), dash.0, dash.1, style);
            chart.draw_series(line).map_err(text)?;
            legend.draw(&DashedPathElement::new(key, dash.0, dash.1, style)).map_err(text)?;
        }
        let comma = if beside.is_empty() { "" } else { ", " };
        let name = Text::new(format!("{engine}{comma}{beside}"), (56, y - 7), FONT);
        legend.draw(&name).map_err(text)?;
    }
    root.present().map_err(text)
}

/// The colour of a curve, which depends on its engine, and its dashes, which depend on its other
/// quantities.
fn look(curves: &Curves, engine: &str, beside: &str) -> (RGBColor, (u32, u32)) {
    let known = ENGINES.iter().find(|(name, _)| *name == engine);
    let color = known.map(|(_, color)| *color).unwrap_or_else(|| {
        let others: BTreeSet<&str> = curves.keys().map(|(engine, _)| engine.as_str()).collect();
        let mut others = others.iter().filter(|other| ENGINES.iter().all(|(n, _)| n != *other));
        OTHERS[others.position(|other| *other == engine).unwrap_or(0) % OTHERS.len()]
    });
    let all: BTreeSet<&str> = curves.keys().map(|(_, beside)| beside.as_str()).collect();
    let number = all.iter().position(|other| *other == beside).unwrap_or(0);
    (color, DASHES[number % DASHES.len()])
}

/// Turns an error into text, because the error borrows the drawing area.
fn text(why: impl std::fmt::Display) -> Box<dyn std::error::Error> {
    why.to_string().into()
}

/// Formats a number for an axis, without exponent and without unnecessary decimals.
fn plain(value: &f64) -> String {
    match value {
        value if value.fract().abs() < 1e-9 => format!("{value:.0}"),
        value if value.abs() < 0.1 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::percentiles::FlowTime;

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
        let name = |beside: &str| ("a".to_owned(), beside.to_owned());
        assert_eq!(curves[&name("trains of 1")], [(1.0, 1.0), (10.0, 2.0)]);
        assert_eq!(curves[&name("trains of 8")], [(10.0, 3.0)]);
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

    #[test]
    fn flow_times_are_drawn_as_a_distribution() {
        let text = "summary = ''\nkind = 'flow_time'\naxis = 'flows'\nfloor = 'touch'\nchain = ''\n\
                    [trace]\npackets = 2\ntail = 1.2\n[[sweep]]\n";
        let definition = Definition::parse("x", text).unwrap();
        let flow_time = FlowTime::of(&[(1, 2000.0), (1, 4000.0)]);
        let rows = [Row { flow_time, ..row("fused", 2, 1, Some(1.0)) }];
        let curves = curves(&definition, &rows);
        let points = &curves[&("fused".to_owned(), String::new())];
        assert!(points.contains(&(2.0, 50.0)) && points.contains(&(4.0, 100.0)));
        assert!(plot(&definition, &rows).unwrap().contains("time of a flow"));
    }

    #[test]
    fn engines_have_colours_of_their_own_and_what_varies_beside_them_dashes() {
        let engines = ["synth", "sequential", "fastclick", "rte"];
        let rows: Vec<Row> = engines
            .iter()
            .flat_map(|engine| [1, 8].map(|train| row(engine, 1, train, Some(1.0))))
            .collect();
        let curves = curves(&definition(), &rows);
        let looks: Vec<_> =
            curves.keys().map(|(engine, beside)| look(&curves, engine, beside)).collect();
        for (number, one) in looks.iter().enumerate() {
            assert!(!looks[..number].contains(one), "{one:?} twice");
        }
        assert_eq!(looks[0].0, looks[1].0, "one engine has one colour");
        assert!(plot(&definition(), &rows).unwrap().contains("rte, trains of 8"));
    }
}
