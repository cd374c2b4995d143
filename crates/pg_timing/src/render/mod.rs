//! Shows a [`Report`](crate::report::Report). Pure functions: nothing here measures or decides.

pub mod human;
pub mod json;
pub mod text;
