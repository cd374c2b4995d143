//! Which server, which database: psql's options, as libpq takes them.

/// Whether to ask for a password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Password {
    /// when the server wants one that libpq has not got from elsewhere
    #[default]
    IfNeeded,
    /// `-w`
    Never,
    /// `-W`
    Always,
}

/// Everything that is not given comes from where libpq finds it: PG* variables, a service, .pgpass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    /// a name, a `key=value` string or a URI
    pub database: Option<String>,
    pub password: Password,
}

impl Target {
    /// Keywords and values for libpq. What is named by itself outweighs what a connection string in
    /// `database` says, as in psql.
    pub(super) fn keywords(&self, password: Option<&str>) -> Vec<(&'static str, String)> {
        let mut keywords = Vec::new();
        let mut add = |keyword, value: Option<&str>| {
            if let Some(value) = value {
                keywords.push((keyword, value.to_string()));
            }
        };
        // libpq expands it where it stands, and what comes later wins.
        add("dbname", self.database.as_deref());
        add("host", self.host.as_deref());
        add("port", self.port.as_deref());
        add("user", self.user.as_deref());
        add("password", password);
        // Statements are read as UTF-8, and answers are, whatever the database keeps.
        add("client_encoding", Some("UTF8"));
        // One server is measured, and one that lets us do so.
        add("application_name", Some("pg_timing"));
        keywords
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_by_itself_comes_after_the_connection_string() {
        let target =
            Target { host: Some("/tmp".into()), database: Some("service=x host=y".into()), ..Target::default() };
        let keywords: Vec<_> = target.keywords(Some("secret")).into_iter().map(|(keyword, _)| keyword).collect();
        assert_eq!(keywords, ["dbname", "host", "password", "client_encoding", "application_name"]);
    }
}
