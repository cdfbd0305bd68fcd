//! SVG pictures: the shapes that drawings of traffic classes and of service graphs share.
//!
//! A picture is a list of boxes, lines and texts. Each has a CSS class that the caller's style
//! sheet colours. The picture grows with its content.

use std::fmt::Write as _;

/// A place in a picture, in pixels from the left and from the top.
pub(crate) type Spot = (usize, usize);

/// A box with a text.
pub(crate) struct Labelled<'a> {
    /// The left upper corner.
    pub(crate) at: Spot,
    /// Width and height.
    pub(crate) size: Spot,
    /// Its CSS class in the style sheet.
    pub(crate) class: &'a str,
    /// The text inside.
    pub(crate) text: &'a str,
    /// A longer text that appears under the pointer, if there is one.
    pub(crate) hint: Option<&'a str>,
    /// Whether the text is centred. Otherwise it begins at the left.
    pub(crate) centred: bool,
}

/// The space between a box's left edge and its text.
const PADDING: usize = 8;
/// The distance from the middle of a box down to the baseline of its text.
const BASE: usize = 4;

/// A picture that is being drawn.
#[derive(Default)]
pub(crate) struct Picture {
    body: String,
    size: Spot,
}

impl Picture {
    /// A new picture of at least this size.
    pub(crate) fn at_least(size: Spot) -> Self {
        Self { body: String::new(), size }
    }

    /// Makes the picture large enough for a place.
    pub(crate) fn reach(&mut self, (x, y): Spot) {
        self.size = (self.size.0.max(x), self.size.1.max(y));
    }

    /// A line of text that begins at a place.
    pub(crate) fn text(&mut self, (x, y): Spot, class: &str, text: &str) {
        if !text.is_empty() {
            let text = escaped(text);
            let _ =
                writeln!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }

    /// A line of text whose parts have their own CSS classes.
    pub(crate) fn spans(&mut self, (x, y): Spot, parts: &[(&str, &str)]) {
        let _ = write!(self.body, "<text x=\"{x}\" y=\"{y}\">");
        for (class, text) in parts {
            let text = escaped(text);
            let _ = match *class {
                "" => write!(self.body, "{text}"),
                class => write!(self.body, "<tspan class=\"{class}\">{text}</tspan>"),
            };
        }
        self.body.push_str("</text>\n");
    }

    /// A box with a text in it.
    pub(crate) fn labelled(&mut self, one: &Labelled<'_>) {
        let ((x, y), (width, height)) = (one.at, one.size);
        let (anchor, text_x) = match one.centred {
            true => (" text-anchor=\"middle\"", x + width / 2),
            false => ("", x + PADDING),
        };
        let hint = one.hint.map(|hint| format!("<title>{}</title>", escaped(hint)));
        let _ = writeln!(
            self.body,
            "<g>{}<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             rx=\"4\"/><text x=\"{text_x}\" y=\"{}\"{anchor}>{}</text></g>",
            hint.unwrap_or_default(),
            one.class,
            y + height / 2 + BASE,
            escaped(one.text)
        );
        self.reach((x + width, y + height));
    }

    /// A circle with a text in its middle.
    pub(crate) fn circle(&mut self, (x, y): Spot, radius: usize, class: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            y + BASE,
            escaped(text)
        );
        self.reach((x + radius, y + radius));
    }

    /// A line through several places.
    pub(crate) fn line(&mut self, class: &str, points: &[Spot]) {
        let places: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let _ =
            writeln!(self.body, "<polyline class=\"{class}\" points=\"{}\"/>", places.join(" "));
        points.iter().for_each(|point| self.reach(*point));
    }

    /// The document with this margin at the right and below, this font size, and these styles.
    pub(crate) fn document(self, margin: usize, font_size: usize, style: &str) -> String {
        let (width, height) = (self.size.0 + margin, self.size.1 + margin);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"{font_size}\">\n<style>polyline{{fill:none}} {style}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_is_as_large_as_what_is_drawn() {
        let mut picture = Picture::at_least((100, 0));
        picture.line("on", &[(10, 10), (300, 40)]);
        picture.circle((20, 60), 12, "merge", "M");
        let document = picture.document(8, 11, "");
        assert!(document.contains("width=\"308\" height=\"80\""), "{document}");
    }

    #[test]
    fn texts_are_escaped() {
        let mut picture = Picture::default();
        picture.text((0, 0), "note", "a < b & \"c\"\n");
        let document = picture.document(0, 11, "");
        assert!(document.contains("a &lt; b &amp; &quot;c&quot;\u{fffd}"), "{document}");
    }
}
