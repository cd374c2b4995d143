//! The server and the database: psql's options.

/// When to ask for a password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Password {
    /// if the server requires a password and libpq does not find one elsewhere
    #[default]
    IfNeeded,
    /// `-w`
    Never,
    /// `-W`
    Always,
}

/// Connection options. libpq finds missing ones in PG* variables, a service file and .pgpass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    /// a database name, a `key=value` string or a URI
    pub database: Option<String>,
    pub password: Password,
}

impl Target {
    /// Returns keywords and values for libpq. As in psql, single options override a connection string in `database`.
    pub(super) fn keywords(&self, password: Option<&str>) -> Vec<(&'static str, String)> {
        let mut keywords = Vec::new();
        let mut add = |keyword, value: Option<&str>| {
            if let Some(value) = value {
                keywords.push((keyword, value.to_string()));
            }
        };
        // libpq expands a connection string here, and later keywords override it.
        add("dbname", self.database.as_deref());
        add("host", self.host.as_deref());
        add("port", self.port.as_deref());
        add("user", self.user.as_deref());
        add("password", password);
        // Statements and results are UTF-8, independent of the database's encoding.
        add("client_encoding", Some("UTF8"));
        add("application_name", Some("pg_timing"));
        keywords
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_options_override_the_connection_string() {
        let target =
            Target { host: Some("/tmp".into()), database: Some("service=x host=y".into()), ..Target::default() };
        let keywords: Vec<_> = target.keywords(Some("secret")).into_iter().map(|(keyword, _)| keyword).collect();
        assert_eq!(keywords, ["dbname", "host", "password", "client_encoding", "application_name"]);
    }
}
