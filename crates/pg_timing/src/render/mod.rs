//! Renders reports. These are pure functions of a report: nothing here measures or judges.

mod explain_text;
pub mod html;
pub mod json;
pub mod nagios;
pub mod text;
