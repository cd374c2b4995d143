//! The parameters through which a condition uses the value of an InitPlan.

/// Returns the parameters in a text: `(InitPlan 1).col1` has `InitPlan 1`. Before PostgreSQL 17 it is written `$0`.
pub fn in_text(text: &str) -> impl Iterator<Item = &str> {
    signs_with_names(text, "$", |c| c.is_ascii_digit()).chain(signs_with_names(text, "InitPlan ", is_in_name))
}

fn signs_with_names<'a>(text: &'a str, sign: &'static str, belongs: fn(char) -> bool) -> impl Iterator<Item = &'a str> {
    text.match_indices(sign).filter_map(move |(at, _)| {
        let start = at + sign.len();
        let rest = &text[start..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        (length > 0).then(|| &text[at..start + length])
    })
}

/// PostgreSQL 19 has names like `InitPlan expr_1`.
fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the parameters that an InitPlan sets, from its label: `InitPlan 1`, or before PostgreSQL 17
/// `InitPlan 1 (returns $0,$1)`.
pub fn of_init_plan(label: &str) -> Vec<&str> {
    match label.split_once(" (returns ") {
        Some((_, values)) => values.trim_end_matches(')').split(',').collect(),
        None => vec![label],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_conditions() {
        let all = |text: &'static str| in_text(text).collect::<Vec<_>>();
        assert_eq!(all("((a > $0) AND (b = $12))"), ["$0", "$12"]);
        assert_eq!(all("(a = (InitPlan 1).col1)"), ["InitPlan 1"]);
        assert_eq!(all("(a = (InitPlan expr_2).col1)"), ["InitPlan expr_2"]);
        assert_eq!(all("(a = '$'::text) $"), [""; 0]);
        assert_eq!(all("(InitPlan )"), [""; 0]);
    }

    #[test]
    fn labels_name_the_parameters() {
        assert_eq!(of_init_plan("InitPlan 1 (returns $0,$1)"), ["$0", "$1"]);
        assert_eq!(of_init_plan("InitPlan 1"), ["InitPlan 1"]);
    }
}
