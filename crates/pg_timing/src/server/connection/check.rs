//! Checks connection options before libpq uses them.

use super::Target;
use super::libpq::{ConnectionOption, Libpq, owned};
use super::parameters::text;
use super::secret::Secrets;
use crate::error::Error;
use crate::escape;
use libc::c_void;

/// Options whose values are file names. libpq prints such names on stderr, for example if others can read the password
/// file.
const FILES: [&str; 7] = ["passfile", "sslkeylogfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"];

/// Returns an error if the connection string is malformed, or if the name of a file could control the terminal.
pub fn check(pq: &Libpq, target: &Target, secrets: &Secrets) -> Result<(), Error> {
    let database = target.database.as_deref().unwrap_or_default();
    // As in libpq: anything else is the name of a database.
    if database.contains('=') || ["postgresql://", "postgres://"].iter().any(|scheme| database.starts_with(scheme)) {
        check_files(&parsed(pq, database, secrets)?, secrets)?;
    }
    // SAFETY: the list is freed once.
    let defaults = unsafe { options(pq, (pq.PQconndefaults)()) };
    check_files(&defaults, secrets)?;
    // The default of passfile is in this directory.
    match std::env::var_os("HOME") {
        Some(home) => check_file("HOME", &home.to_string_lossy(), secrets),
        None => Ok(()),
    }
}

/// Returns the options in a connection string.
fn parsed(pq: &Libpq, database: &str, secrets: &Secrets) -> Result<Vec<(String, String)>, Error> {
    let database = text(database)?;
    let mut message = std::ptr::null_mut();
    // SAFETY: the text ends with NUL. The list and the message are freed once.
    unsafe {
        let list = (pq.PQconninfoParse)(database.as_ptr(), &mut message);
        let why = owned(message);
        (pq.PQfreemem)(message as *mut c_void);
        if list.is_null() {
            let why = secrets.remove_from(without_quotation(why.unwrap_or_default().trim()).as_str());
            return Err(Error::new(
                format!("the connection string is malformed: {why}"),
                "check the spelling of each keyword; examples: \"host=db1 dbname=shop user=u\" or postgresql://u@db1/shop",
            ));
        }
        Ok(options(pq, list))
    }
}

/// Returns libpq's message without the parts of the connection string that it quotes. They can contain the password.
fn without_quotation(message: &str) -> String {
    // These quotations do not come from the connection string.
    let message = message.replace("\"=\"", "=").replace("\"]\"", "]");
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) => format!("{}\"...\"{}", &message[..first], &message[last + 1..]),
        _ => message,
    }
}

fn check_files(options: &[(String, String)], secrets: &Secrets) -> Result<(), Error> {
    let mut files = options.iter().filter(|(keyword, _)| FILES.contains(&keyword.as_str()));
    files.try_for_each(|(keyword, name)| check_file(keyword, name, secrets))
}

fn check_file(keyword: &str, name: &str, secrets: &Secrets) -> Result<(), Error> {
    // Bytes that are not UTF-8 have become U+FFFD.
    match escape::line(name) != name || name.contains('\u{fffd}') {
        true => Err(Error::new(
            format!(
                "the file name in {keyword} has characters that are not safe to print: {}",
                secrets.remove_from(name)
            ),
            "rename the file, or give another one",
        )),
        false => Ok(()),
    }
}

/// Returns the keywords and values of a list, and frees it.
///
/// # Safety
/// The list must be NULL or come from libpq, and is not used afterwards.
pub unsafe fn options(pq: &Libpq, list: *mut ConnectionOption) -> Vec<(String, String)> {
    let mut options = Vec::new();
    // SAFETY: the list ends with an option without a keyword.
    unsafe {
        let mut option = list;
        while !option.is_null() && !(*option).keyword.is_null() {
            options.extend(owned((*option).keyword).zip(owned((*option).value)));
            option = option.add(1);
        }
        (pq.PQconninfoFree)(list);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_of_the_connection_string_is_removed() {
        for (message, safe) in [
            (
                "missing \"=\" after \"hunter2\" in connection info string",
                "missing = after \"...\" in connection info string",
            ),
            ("invalid percent-encoded token: \"hun\"ter2%zz\"", "invalid percent-encoded token: \"...\""),
            (
                "unterminated quoted string in connection info string",
                "unterminated quoted string in connection info string",
            ),
        ] {
            assert_eq!(without_quotation(message), safe);
        }
    }

    #[test]
    fn names_that_control_the_terminal_are_refused() {
        for (name, is_refused) in
            [("/tmp/pf", false), ("/tmp/größe", false), ("/tmp/\x1b[2J", true), ("/tmp/\n", true), ("\u{fffd}", true)]
        {
            assert_eq!(check_file("passfile", name, &Secrets::default()).is_err(), is_refused, "{name:?}");
        }
    }
}
