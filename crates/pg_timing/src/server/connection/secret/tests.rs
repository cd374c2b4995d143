use super::*;
use proptest::prelude::*;

fn secrets(database: &str) -> Secrets {
    let target = Target { database: Some(database.into()), ..Target::default() };
    Secrets::of(&target, std::iter::empty())
}

#[test]
fn no_part_of_a_password_is_in_a_message() {
    for (database, message) in [
        ("postgresql://u:hunter2@[::1/db", "in URI: \"postgresql://u:hunter2@[::1/db\""),
        ("postgresql://u:hunter2/x@h/db", "invalid integer value \"hunter2\" for connection option \"port\""),
        ("postgresql://u:hun/ter2@h/db", "database \"ter2@h/db\" does not exist"),
        ("postgresql://u:abc@[::1", "in URI: \"postgresql://u:abc@[::1\""),
        ("postgresql://u:hunter2", "invalid integer value \"hunter2\" for connection option \"port\""),
        ("postgresql://u:%68unter2@/", "invalid integer value \"hunter2\" for connection option \"port\""),
        ("postgresql://u%3Ahunter2@h/db", "role \"u:hunter2\" does not exist"),
        ("postgresql://u@hunter2@h/db", "could not translate host name \"hunter2@h\""),
        ("postgresql://u;hunter2@h/db", "role \"u;hunter2\" does not exist"),
        ("postgresql://h/db&password=%68unter2", "database \"db&password=hunter2\" does not exist"),
        ("postgresql:/u:hunter2@h/db", "database \"postgresql:/u:hunter2@h/db\" does not exist"),
        ("jdbc:postgresql://u:hunter2@h/db", "database \"jdbc:postgresql://u:hunter2@h/db\" does not exist"),
        ("u:hunter2@h", "database \"u:hunter2@h\" does not exist"),
        ("host=h dbname=u:hunter2@h", "database \"u:hunter2@h\" does not exist"),
        ("host=h dbname=postgresql://u:hunter2@h/db", "database \"postgresql://u:hunter2@h/db\" does not exist"),
        ("host=h;pwd=hunter2", "could not translate host name \"h;pwd=hunter2\""),
        ("host=h password=hunter2 hunter3 port=1", "missing \"=\" after \"hunter3\" in connection info string"),
        ("password='a b' hunter2=1", "invalid connection option \"hunter2\""),
        ("passfile=/x password=hunter2 hunter3", "missing \"=\" after \"hunter3\" in connection info string"),
        ("postgresql://h/d?passfile=/x&password=hunter2%zz", "invalid percent-encoded token: \"hunter2%zz\""),
        ("host=h password = 'hunter2", "unterminated quoted string in \"password='hunter2\""),
    ] {
        let safe = secrets(database).remove_from(message);
        assert!(!["hun", "ter2", "abc"].iter().any(|part| safe.contains(part)), "{safe}");
    }
}

#[test]
fn other_messages_are_unchanged() {
    for (database, message) in [
        ("host=h port=x", "invalid integer value \"x\" for connection option \"port\""),
        ("postgresql://u:hunter2@h/shop", "database \"shop\" does not exist"),
        ("postgresql://u:hunter2@h/shop", "password authentication failed for user \"u\""),
        ("password=hunter2 host=shop", "could not translate host name \"shop\" to address"),
        ("password='hunter2' host=shop", "could not translate host name \"shop\" to address"),
        ("host=shop user=maria@corp.com", "role \"maria@corp.com\" does not exist"),
        ("postgresql://maria%40corp.com:hunter2@shop/db", "role \"maria@corp.com\" does not exist"),
        ("postgresql://shop/db?user=maria@corp.com&sslmode=x", "invalid sslmode value for user: \"x\""),
        ("postgresql://shop:5433,host2:5434/data", "connection to server at \"host2\", port 5434, database data"),
        ("postgresql://[fe80::abcd]:5433/data", "connection to server at \"fe80::abcd\", port 5433, database data"),
        ("postgresql://u:@h/db", "database \"db\" does not exist"),
        ("postgresql://u:12345@h:5432/db", "port 5432 failed"),
        ("shop", "database \"shop\" does not exist"),
        ("postgresql://maria%40corp.com@shop/db", "could not translate host name \"db.corp.com\""),
        ("postgresql://CORP\\maria@shop/db", "role \"CORP\\maria\" does not exist"),
        ("host=h user=maria_corp.com#GUEST#@corp.com", "role \"maria_corp.com#GUEST#@corp.com\" does not exist"),
        ("dbname=compass user=app host=shop", "password authentication failed for user \"app\""),
        ("dbname=passenger host=db1", "could not translate host name \"db1\""),
        ("require_auth=password host=h", "could not translate host name"),
        ("dbname=compass krbsrvname=shop", "invalid krbsrvname"),
        ("postgresql://compass:5432/orders", "database \"orders\" does not exist"),
        ("host=/home/maria@corp.com/run", "connection to server on socket \"/home/maria@corp.com/run\" failed"),
        ("passfile=/home/maria@corp.com/.pgpass", "password file \"/home/maria@corp.com/.pgpass\" is not a file"),
    ] {
        assert_eq!(secrets(database).remove_from(message), message);
    }
}

#[test]
fn variables_and_other_options_contain_secrets() {
    let variables = [("PGPASSWORD", "hunter2"), ("PGSERVICE", "postgresql://u:hunter3@h/db"), ("HOME", "/root")];
    let target = Target { user: Some("u:hunter4".into()), ..Target::default() };
    let secrets = Secrets::of(&target, variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    assert_eq!(secrets.remove_from("hunter2 hunter3 hunter4 /root"), "*** *** *** /root");
}

#[test]
fn user_names_and_file_names_are_no_secrets() {
    for user in ["maria@corp.com", "sa@project.iam", "app@server", "CORP\\maria"] {
        let target = Target { user: Some(user.into()), ..Target::default() };
        let message = format!("role \"{user}\" does not exist on \"db.corp.com\"");
        assert_eq!(Secrets::of(&target, std::iter::empty()).remove_from(&message), message);
    }
    let path = "/home/maria@corp.com/.pgpass";
    for keyword in ["passfile", "servicefile", "sslkey", "sslrootcert", "data", "sysconfdir"] {
        let mut secrets = Secrets::default();
        secrets.add_option(keyword, path);
        assert_eq!(secrets.remove_from(path), path, "{keyword}");
    }
}

#[test]
fn all_kinds_of_secret_options_are_known() {
    for keyword in
        ["password", "sslpassword", "oauth_client_secret", "oauthclientsecret", "scram_client_key", "scram_server_key"]
    {
        let mut secrets = Secrets::default();
        secrets.add_option(keyword, "hunter2");
        assert_eq!(secrets.remove_from("hunter2"), "***", "{keyword}");
    }
    let secrets = secrets("host=h scram_client_key=hunter2 oauth_client_secret=hunter3");
    assert_eq!(secrets.remove_from("hunter2 hunter3"), "*** ***");
}

#[test]
fn equal_secrets_are_stored_once() {
    let mut secrets = Secrets::default();
    ["hunter2", "hunter3", "hunter2"].iter().for_each(|secret| secrets.add_password(secret));
    assert_eq!(secrets.0, ["hunter2", "hunter3"]);
}

#[test]
fn a_message_can_quote_a_password_that_was_not_known() {
    let message = "invalid LDAP URL \"ldap://u:hunter2@h/x\": must have exactly one attribute";
    assert_eq!(Secrets::default().remove_from_message(message), message.replace("hunter2", "***"));
}

proptest! {
    #[test]
    fn any_text_can_be_an_option(text in any::<String>(), message in any::<String>()) {
        secrets(&text).remove_from(&message);
        secrets(&format!("postgresql://u:{text}@h?password={text}")).remove_from(&message);
    }
}
