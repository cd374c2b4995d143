//! Restores the indentation of a plan. A chat or a form may remove the spaces at the beginning of lines, and only they
//! show which node is an input of which.
//!
//! The order of the lines remains. Each node type has a known number of inputs, and a node's figures include those of its
//! inputs. If exactly one tree fits, it is the plan's tree. Figures are used only to exclude a tree.

mod figures;
mod label;
mod place;
mod search;
#[cfg(test)]
mod tests;

use crate::server::explain::captured::node_line::{NodeLine, node_line};
use crate::server::explain::captured::text::{TextError, is_label};
use figures::Figures;
use label::Label;
use place::Place;
use search::Trees;

/// A line of the plan: a node with its label and the lines below it, up to the next node.
struct Block<'a> {
    label: Option<&'a str>,
    line: &'a str,
    node: NodeLine,
    properties: Vec<&'a str>,
}

/// Number of subplans that are searched in all conditions. No real plan has more.
const MAX_SUBPLANS: usize = 50;

/// The beginnings of the lines below the tree.
const FOOTERS: [&str; 9] = [
    "Planning",
    "Execution ",
    "Total runtime",
    "Trigger ",
    "JIT:",
    "Settings:",
    "Query Identifier",
    "Serialization",
    "Fast Timing",
];

/// Returns the plan's lines with the indentation of the only tree that fits.
pub fn restored(plan: &str) -> Result<String, TextError> {
    let (blocks, footer) = split(plan)?;
    let name = |node: usize| blocks[node].node.node.name.clone();
    match search::trees(&places(&blocks, plan)) {
        Trees::One(parents) => Ok(indented(&blocks, &parents, &footer)),
        Trees::None => Err(TextError::NoTree),
        Trees::TooMany => Err(TextError::ManyTrees),
        Trees::Several { node, parents } => Err(TextError::TwoTrees { node: name(node), parents: parents.map(name) }),
    }
}

fn places(blocks: &[Block], plan: &str) -> Vec<Place> {
    // Sampled times of parent and child have independent errors.
    let is_sampled =
        plan.lines().any(|line| ["Fast Timing: ", "Timing: "].iter().any(|name| line.trim().starts_with(name)));
    let mut places: Vec<Place> = blocks
        .iter()
        .map(|Block { label, line, node: NodeLine { node, .. }, .. }| {
            let figures = Figures::of(node, line);
            let figures = if is_sampled { Figures { ms: None, ..figures } } else { figures };
            Place::new(node, label.map(Label::new), figures)
        })
        .collect();
    // EXPLAIN prints a subplan at the first node that contains it.
    let mut unowned: Vec<(Label, usize)> =
        places.iter().enumerate().filter_map(|(n, place)| Some((place.label.clone()?, n))).collect();
    unowned.retain(|(label, _)| !label.is_first);
    unowned.truncate(MAX_SUBPLANS);
    for (index, block) in blocks.iter().enumerate() {
        if !places[index].is_leaf() {
            continue;
        }
        unowned.retain(|(label, node)| {
            let is_owner = *node > index && block.properties.iter().any(|property| label.is_in(property));
            if is_owner {
                places[*node].owner = Some(index);
            }
            !is_owner
        });
    }
    places
}

/// Returns the nodes, and the lines below the tree.
fn split(plan: &str) -> Result<(Vec<Block<'_>>, Vec<&str>), TextError> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut label, mut footer) = (None, Vec::new());
    for line in plan.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(node) = node_line(line) {
            blocks.push(Block { label: label.take(), line, node, properties: Vec::new() });
        } else if is_label(line) {
            label = Some(line);
        } else if !footer.is_empty() || FOOTERS.iter().any(|name| line.starts_with(name)) {
            footer.push(line);
        } else if let Some(block) = blocks.last_mut() {
            block.properties.push(line);
        }
    }
    // A label without its node: the plan is truncated. Nodes never follow the lines below the tree.
    if label.is_some() { Err(TextError::Cut) } else { Ok((blocks, footer)) }
}

/// Returns the lines in the layout of `ExplainNode()` in explain.c.
fn indented(blocks: &[Block], parents: &[usize], footer: &[&str]) -> String {
    let mut text = String::new();
    let mut line = |column: usize, line: &str| {
        text.extend(std::iter::repeat_n(' ', column));
        text.push_str(line);
        text.push('\n');
    };
    // column of the lines below each node
    let mut below: Vec<usize> = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let mut column = if index == 0 { 0 } else { below[parents[index]] };
        if let Some(label) = block.label {
            line(column, label);
            column += 2;
        }
        line(column, block.line);
        below.push(column + if index == 0 { 2 } else { 6 });
        block.properties.iter().for_each(|property| line(below[index], property));
    }
    footer.iter().for_each(|text| line(0, text));
    text
}
