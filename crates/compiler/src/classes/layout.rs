//! The positions of blocks and lines in a picture of a program. Blocks are in layers by depth, and
//! lines lead around the blocks that they pass (Sugiyama, Tagawa, Toda, 1981, without the repeated
//! reordering of layers).

use braid_ir::residual::{End, Residual};

/// The width and height of a block.
pub(super) const WIDTH: usize = 260;
pub(super) const HEIGHT: usize = 34;
/// The gap between blocks of a layer, and between layers.
const GAP: (usize, usize) = (24, 30);
/// The room for a line between blocks.
const LANE: usize = 10;
const LEFT: usize = 20;

/// The positions in a picture, in pixels.
pub(super) struct Layout {
    /// The left upper corner of each block.
    pub(super) places: Vec<(usize, usize)>,
    /// Lines from block to block: the kind `yes`, `no` or `on`, and the points.
    pub(super) lines: Vec<(&'static str, Vec<(usize, usize)>)>,
    /// Width and height.
    pub(super) size: (usize, usize),
}

/// An item of a layer: a block, or a line that passes through the layer.
struct Item {
    is_block: bool,
    layer: usize,
    /// The items of the layer above from which lines lead here. Each has the distance of the line's
    /// start from the item's left edge.
    from: Vec<(usize, usize)>,
    x: usize,
}

impl Item {
    fn width(&self) -> usize {
        if self.is_block { WIDTH } else { LANE }
    }

    fn middle(&self) -> usize {
        self.x + self.width() / 2
    }
}

impl Layout {
    /// The layout of the first `count` blocks of a program.
    pub(super) fn of(program: &Residual, count: usize, top: usize) -> Self {
        let mut items = blocks(program, count);
        let mut lines = Vec::new();
        for (number, block) in program.blocks.iter().take(count).enumerate() {
            let kinds: &[&str] = match block.end {
                End::Branch { .. } => &["yes", "no"],
                _ => &["on"],
            };
            for (target, kind) in block.end.targets().into_iter().zip(kinds) {
                let target = target.block.index();
                if target < count {
                    lines.push((*kind, lanes(&mut items, (number, start(kind)), target)));
                }
            }
        }
        let widest = order(&mut items);
        let y = |item: &Item| top + item.layer * (HEIGHT + GAP.1);
        let places = items.iter().take(count).map(|item| (item.x, y(item))).collect();
        let lines = lines.into_iter().map(|(kind, path)| {
            let mut points = Vec::new();
            for (place, number) in path.iter().enumerate() {
                let item = &items[*number];
                let middle = if place > 0 { item.middle() } else { item.x + start(kind) };
                if place > 0 {
                    points.push((middle, y(item)));
                }
                if place + 1 < path.len() {
                    points.push((middle, y(item) + HEIGHT));
                }
            }
            (kind, points)
        });
        let lines = lines.collect();
        let layers = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
        Self { places, lines, size: (widest + LEFT, layers * (HEIGHT + GAP.1)) }
    }
}

/// The position where a line leaves a block.
fn start(kind: &str) -> usize {
    match kind {
        "yes" => WIDTH / 3,
        "no" => 2 * WIDTH / 3,
        _ => WIDTH / 2,
    }
}

/// Blocks in layers: each block is below all blocks that lead to it.
fn blocks(program: &Residual, count: usize) -> Vec<Item> {
    let item = |_| Item { is_block: true, layer: 0, from: Vec::new(), x: 0 };
    let mut items: Vec<Item> = (0..count).map(item).collect();
    for (number, block) in program.blocks.iter().take(count).enumerate() {
        let below = items[number].layer + 1;
        for target in block.end.targets() {
            if let Some(next) = items.get_mut(target.block.index()) {
                next.layer = next.layer.max(below);
            }
        }
    }
    items
}

/// The items of a line between two blocks: the blocks themselves, and a lane in each layer between
/// them.
fn lanes(items: &mut Vec<Item>, from: (usize, usize), to: usize) -> Vec<usize> {
    let (mut path, mut last) = (vec![from.0], from);
    for layer in items[from.0].layer + 1..items[to].layer {
        let lane = Item { is_block: false, layer, from: vec![last], x: 0 };
        last = (items.len(), LANE / 2);
        path.push(items.len());
        items.push(lane);
    }
    items[to].from.push(last);
    path.push(to);
    path
}

/// Orders each layer by the items above it, and packs it to the left. Returns the width of the
/// widest layer.
fn order(items: &mut [Item]) -> usize {
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        if layers.len() <= item.layer {
            layers.resize_with(item.layer + 1, Vec::new);
        }
        layers[item.layer].push(number);
    }
    let mut widest = 0;
    for mut layer in layers {
        layer.sort_by_key(|number| {
            let from = &items[*number].from;
            from.iter().map(|(above, at)| items[*above].x + at).sum::<usize>() / from.len().max(1)
        });
        let mut x = LEFT;
        for number in layer {
            items[number].x = x;
            x += items[number].width() + GAP.0;
        }
        widest = widest.max(x);
    }
    widest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items by layer, each with the items that lead to it.
    fn items(all: &[(usize, &[usize])]) -> Vec<Item> {
        let item = |(layer, from): &(usize, &[usize])| Item {
            is_block: true,
            layer: *layer,
            from: from.iter().map(|above| (*above, WIDTH / 2)).collect(),
            x: 0,
        };
        all.iter().map(item).collect()
    }

    #[test]
    fn line_past_a_layer_has_a_lane_there_beside_the_blocks() {
        let mut items = items(&[(0, &[]), (1, &[0]), (2, &[1])]);
        let path = lanes(&mut items, (0, WIDTH / 2), 2);
        assert_eq!(path, [0, 3, 2]);
        order(&mut items);
        let (block, lane) = (&items[1], &items[3]);
        assert_eq!(lane.layer, 1);
        assert!(lane.x >= block.x + WIDTH || lane.x + LANE <= block.x);
    }

    #[test]
    fn blocks_stand_in_the_order_of_their_predecessors() {
        let mut items = items(&[(0, &[]), (0, &[]), (1, &[1]), (1, &[0])]);
        let widest = order(&mut items);
        assert!(items[3].x < items[2].x);
        assert_eq!(widest, LEFT + 2 * (WIDTH + GAP.0));
    }
}
