//! HTML pages in one file: without scripts, without external resources, for light and dark mode.

pub mod explain;
pub mod log;
pub mod top;

use maud::{DOCTYPE, Markup, html};

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.25em; font-weight: 600; max-width: 50em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; border-bottom: 1px solid GrayText; }
td { text-align: right; white-space: nowrap; }
th, td { padding: .15em .6em; }
th.node, td.node { text-align: left; white-space: normal; }
tr:nth-child(even) { background: color-mix(in srgb, CanvasText 4%, Canvas); }
td.bars { width: 14em; }
.bar { height: .5em; margin: .1em 0; }
.bar.reported { background: #c0622b; }
.bar.corrected { background: #4583c9; }
span.reported { color: #c0622b; }
span.corrected { color: #4583c9; }
.rank { font-weight: 600; }
.error { opacity: .7; }
dt { font-weight: 600; }
pre { white-space: pre-wrap; }
footer { margin-top: 2em; opacity: .7; font-size: .85em; }
";

fn page(title: &str, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (maud::PreEscaped(STYLE)) }
            }
            body {
                (body)
                footer { "pg_timing " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
    .into_string()
}
