use crate::plan::{Explained, each_plan};
use std::path::Path;

/// Returns the plans of a text, or why they are not readable.
pub fn plans(text: &str) -> Vec<Result<Explained, String>> {
    let mut plans = Vec::new();
    let without_line = |plan| Explained { line: 0, ..plan };
    each_plan(text, false, &mut |plan| plans.push(plan.map(without_line).map_err(|why| format!("{why:?}"))));
    plans
}

/// Returns the plans of the statements in tests/explain and of TPC-H, with and without parallel workers, from PostgreSQL 15
/// and 18: one plan of each shape.
pub fn real_plans() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kinds");
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    [read("15.txt"), read("18.txt")]
        .iter()
        .flat_map(|text| text.split("\n\n"))
        .map(|plan| format!("{plan}\n"))
        .collect()
}

/// The files are one plan as text and one as JSON, printed by psql 18 in all of its formats that the frame of the lines explains.
#[test]
fn plans_in_all_formats_of_psql_are_the_same() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/psql");
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let (text, json) = (plans(&read("unaligned.txt")), plans(&read("unaligned.json.txt")));
    assert_eq!((text.len(), json.len()), (1, 1));
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // psql's format `wrapped` breaks figures. It is refused.
        if name.contains("wrapped") {
            assert!(plans(&read(&name)).iter().all(Result::is_err), "{name}");
            continue;
        }
        let expected = if name.ends_with(".json.txt") { &json } else { &text };
        let read = plans(&read(&name));
        if read != *expected {
            wrong.push(format!("{name}: {} {:?}", read.len(), read.first().map(|plan| plan.as_ref().err())));
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
