//! Renders reports. Nothing here measures or judges.

mod columns;
pub mod escape;
mod explain_text;
mod host_text;
pub mod html;
pub mod json;
mod log_text;
pub mod nagios;
pub mod openmetrics;
pub mod plan;
pub mod plus_minus;
pub mod screen;
pub mod text;
