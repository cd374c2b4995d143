//! The label of a subplan: `InitPlan 1 (returns $0)`, `CTE c` or `SubPlan 2`.

#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// an InitPlan or a CTE stands before the inputs of its node, and other subplans after them
    pub is_first: bool,
    /// `SubPlan 1`, without what the subplan returns
    pub name: String,
    pub cte: Option<String>,
    /// missing before PostgreSQL 8.4 and since 19
    number: Option<u32>,
}

impl Label {
    pub fn new(text: &str) -> Label {
        let name = text.split(" (").next().unwrap_or(text);
        Label {
            is_first: !name.starts_with("SubPlan"),
            name: name.into(),
            cte: name.strip_prefix("CTE ").map(str::to_string),
            number: name.strip_prefix("InitPlan ").or(name.strip_prefix("SubPlan ")).and_then(|text| text.parse().ok()),
        }
    }

    /// Returns whether this subplan can be a part of another one. PostgreSQL numbers a subplan after its parts.
    pub fn can_be_within(&self, outer: &Label) -> bool {
        self.number.zip(outer.number).is_none_or(|(number, outer)| number < outer)
    }

    /// Returns whether a condition contains the subplan.
    pub fn is_in(&self, condition: &str) -> bool {
        condition.match_indices(&self.name).any(|(at, _)| {
            let next = condition[at + self.name.len()..].chars().next();
            next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn labels_are_parsed() {
        let label = Label::new("InitPlan 12 (returns $0,$1)");
        assert_eq!((label.is_first, label.number, label.name.as_str()), (true, Some(12), "InitPlan 12"));
        assert!(label.can_be_within(&Label::new("SubPlan 13")) && !label.can_be_within(&Label::new("InitPlan 2")));
        assert!(label.can_be_within(&Label::new("CTE c")) && label.can_be_within(&Label::new("SubPlan any_1")));
        let label = Label::new("SubPlan 1");
        assert!(!label.is_first && label.is_in("Filter: (hashed SubPlan 1)") && !label.is_in("Filter: (SubPlan 12)"));
        assert_eq!(Label::new("CTE a b").cte.as_deref(), Some("a b"));
    }
}
