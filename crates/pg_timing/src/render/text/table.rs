//! Tables whose columns are as wide as their widest cells.

use crate::render::columns::{columns, left, right};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// The widths of a table's columns.
pub struct Table<const N: usize> {
    aligned: [Align; N],
    widths: [usize; N],
}

impl<const N: usize> Table<N> {
    /// Returns the widths for these rows, and for the head.
    pub fn new<'a>(aligned: [Align; N], head: &[&str; N], rows: impl IntoIterator<Item = &'a [String; N]>) -> Table<N> {
        let mut widths = head.map(columns);
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        Table { aligned, widths }
    }

    /// Returns a row in one line.
    pub fn line<T: AsRef<str>>(&self, row: &[T; N]) -> String {
        let cells = row.iter().zip(self.aligned).zip(self.widths).map(|((cell, align), width)| match align {
            Align::Left => left(cell.as_ref(), width),
            Align::Right => right(cell.as_ref(), width),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cells() {
        let row = ["\u{65e5}\u{672c}".to_string(), "1000".to_string()];
        let table = Table::new([Align::Left, Align::Right], &["name", "n"], [&row]);
        assert_eq!([table.line(&["name", "n"]), table.line(&row)], ["name     n", "\u{65e5}\u{672c}  1000"]);
        assert_eq!(table.line(&["x", "7"]), "x        7");
    }
}
