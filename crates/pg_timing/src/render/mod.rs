//! Formats for programs. `document/` has the text and the pages. Nothing here measures or judges.

pub mod columns;
pub mod explain_text;
pub mod json;
pub mod nagios;
pub mod plan;
