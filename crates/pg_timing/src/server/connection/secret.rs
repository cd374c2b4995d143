//! Removes passwords from error messages. libpq and servers repeat text that they do not understand. After a typing
//! error, a password can be a part of the name of a host, a database or a role.

use super::Target;

/// Shorter secrets would also hide parts of ordinary words.
const MIN_CHARS: usize = 4;
const HIDDEN: &str = "***";
/// libpq or a server can split a password at these characters, if it parses the text in another way than the user
/// meant.
const DELIMITERS: &[char] = &[
    '@', '/', '?', '#', ':', ',', ';', '&', '=', '[', ']', '(', ')', '<', '>', '\'', '"', '\\', ' ', '\t', '\r', '\n',
];
/// libpq's keywords whose values are not secret: <https://www.postgresql.org/docs/current/libpq-connect.html>
/// The values of keywords that begin with `ssl` are not secret, either, except `sslpassword`.
const HARMLESS: &[&str] = &[
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "options",
    "service",
    "servicefile",
    "connect_timeout",
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "passfile",
    "target_session_attrs",
    "load_balance_hosts",
    "channel_binding",
    "gssencmode",
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "require_auth",
    "requirepeer",
    "requiressl",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "replication",
    "min_protocol_version",
    "max_protocol_version",
    "oauth_issuer",
    "oauth_client_id",
    "oauth_scope",
];

/// Texts that must not be printed. They are removed only from text of libpq, of servers and of the user, because our
/// own sentences can contain the same words.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Returns the secrets in the connection options and in libpq's variables.
    pub fn of(target: &Target, variables: impl Iterator<Item = (String, String)>) -> Secrets {
        let mut secrets = Secrets::default();
        for text in [&target.host, &target.port, &target.database].into_iter().flatten() {
            secrets.add_option("", text);
        }
        secrets.add_option("user", target.user.as_deref().unwrap_or_default());
        for (name, value) in variables.filter(|(name, _)| name.starts_with("PG")) {
            secrets.add_option(&name[2..].to_ascii_lowercase(), &value);
        }
        secrets
    }

    /// Adds a password.
    pub fn add_password(&mut self, password: &str) {
        if !password.is_empty() {
            self.0.push(password.to_string());
        }
        // Longer secrets come first, because they can contain shorter ones. `dedup` needs equal ones next to each
        // other.
        self.0.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.0.dedup();
    }

    /// Adds the secrets in the value of a connection option, which can be a connection string.
    pub fn add_option(&mut self, keyword: &str, value: &str) {
        match keyword {
            "password"
            | "sslpassword"
            | "oauth_client_secret"
            | "oauthclientsecret"
            | "scram_client_key"
            | "scram_server_key" => {
                self.add_password(value);
                self.add_password(&percent_decoded(value));
            }
            "user" => self.add_user(value),
            // File names, and other options that are never connection strings
            "passfile" | "servicefile" | "sysconfdir" | "localedir" | "data" => {}
            _ if keyword.starts_with("ssl") => {}
            _ => {
                self.add_values(value);
                self.add_values(&percent_decoded(value));
                self.add_logins(value);
            }
        }
    }

    /// Adds the password in `user:password`. Only a colon begins a password: names like `maria@corp.com` and
    /// `CORP\maria` are usual.
    fn add_user(&mut self, user: &str) {
        for user in [user, &percent_decoded(user)] {
            if let Some((_, password)) = user.split_once(':') {
                self.add_parts(password);
            }
        }
    }

    /// Adds the values of keywords that sound like a password.
    fn add_values(&mut self, text: &str) {
        let lower = text.to_ascii_lowercase();
        let found = ["pass", "pw", "psw", "secret", "scram_client_key", "scram_server_key"]
            .iter()
            .flat_map(|word| lower.match_indices(word));
        for (start, word) in found {
            let rest = &text[start + word.len()..];
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            let value = rest.trim_start_matches([' ', '\t', '\n', '=', ':']);
            let separator = &rest[..rest.len() - value.len()];
            let is_file = lower[start..text.len() - rest.len()] == *"passfile";
            // In a URI, a colon comes after a host or a user.
            let has_equals = separator.contains('=') || separator.contains(':') && !text.contains("://");
            // The word can be a part of another value, with the next pair after it: dbname=compass user=app.
            let is_value = !has_equals && (text.contains("://") || is_harmless_pair(value));
            if is_file || is_value || separator.is_empty() {
                continue;
            }
            // If the user forgot the quotes, the words after the value also belong to it.
            let separators = [' ', '\t', '\n', '&', ';', ','];
            let mut end = value.len();
            for (at, _) in value.match_indices(separators) {
                if is_harmless_pair(value[at..].trim_start_matches(separators)) {
                    end = at;
                    break;
                }
            }
            self.add_parts(&value[..end]);
        }
    }

    /// Adds the passwords in texts like `user:password@host`.
    fn add_logins(&mut self, text: &str) {
        self.add_uri(text);
        for word in text.split_whitespace() {
            let (keyword, value) = word.split_once('=').filter(|_| is_harmless_pair(word)).unwrap_or(("", word));
            match value.rsplit_once('@') {
                _ if value.contains("://") => self.add_uri(value),
                _ if keyword == "user" => self.add_user(value),
                // The path of a socket directory or of a file
                _ if value.starts_with('/') && !value.starts_with("//") => {}
                Some((login, _)) => self.add_login(login),
                None => {}
            }
        }
    }

    /// Returns libpq's message without the secrets, and without the passwords in URIs that it quotes. Those can come
    /// from a service file.
    pub fn remove_from_message(&self, message: &str) -> String {
        let mut secrets = self.clone();
        message.split_whitespace().for_each(|word| secrets.add_uri(word));
        secrets.remove_from(message)
    }

    /// Adds the password in a URI.
    fn add_uri(&mut self, text: &str) {
        let Some((_, authority)) = text.split_once("://") else { return };
        // The pairs at the end of a URI can also contain an @.
        let pairs = authority.match_indices(['?', '&']).find(|(at, _)| is_harmless_pair(&authority[at + 1..]));
        let authority = &authority[..pairs.map_or(authority.len(), |(at, _)| at)];
        match authority.rsplit_once('@') {
            Some((login, _)) => self.add_login(login),
            None if authority.starts_with('[') => {}
            // Without an @, the password looks like a port.
            None => {
                let port = authority.split_once(':').and_then(|(_, port)| port.split(['/', '?', ',']).next());
                port.filter(|port| !is_number(port)).into_iter().for_each(|port| self.add_parts(port));
            }
        }
    }

    /// Adds the password of `user:password`, in which characters of names can be encoded (%40). If there is no colon,
    /// the first character that names do not contain is assumed to be a mistyped colon.
    fn add_login(&mut self, login: &str) {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '%' | '\\');
        match login.split_once(|c| !is_name(c)) {
            Some((_, password)) if !login.contains(':') => self.add_parts(password),
            _ => self.add_user(login),
        }
    }

    fn add_parts(&mut self, text: &str) {
        for text in [text, &percent_decoded(text)] {
            self.add_password(text);
            for part in text.split(DELIMITERS).filter(|part| part.chars().count() >= MIN_CHARS && !is_number(part)) {
                self.add_password(part);
            }
        }
    }

    /// Returns the text without the secrets.
    pub fn remove_from(&self, text: &str) -> String {
        let mut text = text.to_string();
        for secret in &self.0 {
            text = match secret.chars().count() < MIN_CHARS {
                true => text
                    .replace(&format!("\"{secret}\""), &format!("\"{HIDDEN}\""))
                    .replace(&format!(":{secret}@"), &format!(":{HIDDEN}@")),
                false => text.replace(secret, HIDDEN),
            };
        }
        text
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns whether the text begins with a pair like `host=db1`, whose value is not secret.
fn is_harmless_pair(text: &str) -> bool {
    let keyword = text.split_once('=').map_or("", |(keyword, _)| keyword.trim());
    HARMLESS.contains(&keyword) || keyword.starts_with("ssl") && keyword != "sslpassword"
}

/// Returns the text with `%41` replaced by `A`. Other percent signs remain.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|digits| byte == b'%' && digits.is_ascii());
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests;
