//! Parses text formats of /proc and /sys.

/// Returns the first value of a field in /proc/cpuinfo.
pub fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// Parses the kernel's list format, like `0-3,8`.
pub fn number_list(list: &str) -> Option<Vec<usize>> {
    // No machine has more CPUs. A longer range is invalid.
    const MAX: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to > MAX || numbers.len() > MAX {
            return None;
        }
        numbers.extend(from..=to);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_ranges_and_single_numbers() {
        assert_eq!(number_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(number_list("0"), Some(vec![0]));
        for invalid in ["", "x", "5-3", "0-99999999999", "1-", "0-0-0"] {
            assert_eq!(number_list(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_first_value_of_a_field_is_returned() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A B\nmodel name\t: C\n";
        assert_eq!(cpuinfo_field(cpuinfo, "model name"), Some("A B"));
        assert_eq!(cpuinfo_field(cpuinfo, "model"), None);
    }
}
