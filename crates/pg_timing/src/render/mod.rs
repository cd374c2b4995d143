//! Shows a [`Report`](crate::report::Report). Pure functions: nothing here measures or decides.

pub mod html;
pub mod json;
pub mod nagios;
pub mod text;
mod words;
