//! The address of `--listen`.

use crate::error::Error;
use crate::human::reason;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

/// The host if the address has none: other hosts cannot read the metrics unless the user wants it.
const LOCAL: &str = "127.0.0.1";

/// Connections that wait to be accepted. The default of 128 fills up in one burst, and then clients wait for a second before
/// they try again. The kernel reduces larger values to its own limit.
const BACKLOG: i32 = 4096;

/// A host and a port.
#[derive(Debug, PartialEq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    pub fn parse(text: &str) -> Result<Address, Error> {
        let hint = "type ADDRESS:PORT, for example --listen 127.0.0.1:9864";
        let refused = |why: &str| Error::new(format!("\"{text}\" is not an address: {why}"), hint);
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port),
            None if is_number => ("", text),
            None => return Err(refused("it has no port")),
        };
        // Rust also accepts "+80".
        let port =
            Some(port).filter(|port| port.bytes().all(|b| b.is_ascii_digit())).and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| refused("the port is not a number from 0 to 65535"))?;
        let host = match host.strip_prefix('[').map(|host| host.strip_suffix(']')) {
            Some(Some(inner)) if !inner.is_empty() => inner,
            None if host.is_empty() => LOCAL,
            None if host.contains([':', ']']) => {
                return Err(refused("an IPv6 address needs brackets, like [::1]:9864"));
            }
            None => host,
            _ => return Err(refused("the brackets are wrong")),
        };
        Ok(Address { host: host.into(), port })
    }

    /// Returns a socket that listens, and its address. If a name has several addresses, it is the first one that this host
    /// can use.
    pub fn listen(&self) -> Result<(TcpListener, SocketAddr), Error> {
        let Address { host, port } = self;
        let addresses: Vec<SocketAddr> = match (host.as_str(), *port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                let what = format!("could not listen on \"{host}\": {}", reason(&error));
                return Err(Error::new(what, "use an IP address of this host, for example 127.0.0.1 or 0.0.0.0"));
            }
        };
        let listened = TcpListener::bind(&addresses[..]).and_then(|listener| {
            rustix::net::listen(&listener, BACKLOG)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        listened.map_err(|error| {
            let shown = addresses.first().map_or(format!("{host}:{port}"), SocketAddr::to_string);
            Error::new(format!("could not listen on {shown}: {}", reason(&error)), hint(error.kind(), *port))
        })
    }
}

fn hint(kind: ErrorKind, port: u16) -> String {
    match kind {
        ErrorKind::AddrInUse => {
            format!("choose another port, or find the program that uses it: ss -ltnp 'sport = :{port}'")
        }
        ErrorKind::PermissionDenied => {
            "use a port above 1023: lower ports need the capability CAP_NET_BIND_SERVICE".into()
        }
        ErrorKind::AddrNotAvailable => "use an address of this host: ip address".into(),
        _ => "use an IP address of this host, for example 127.0.0.1 or 0.0.0.0".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for (text, host, port) in [
            ("127.0.0.1:9864", "127.0.0.1", 9864),
            (":9864", LOCAL, 9864),
            ("9864", LOCAL, 9864),
            ("0.0.0.0:0", "0.0.0.0", 0),
            ("[::1]:80", "::1", 80),
            ("db1.example.com:65535", "db1.example.com", 65535),
        ] {
            assert_eq!(Address::parse(text), Ok(Address { host: host.into(), port }), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, why) in [
            ("", "it has no port"),
            ("localhost", "it has no port"),
            ("127.0.0.1", "it has no port"),
            ("localhost:", "the port is not a number"),
            (":", "the port is not a number"),
            (":65536", "the port is not a number"),
            ("99999999999", "the port is not a number"),
            (":+80", "the port is not a number"),
            ("a:-1", "the port is not a number"),
            ("http://localhost:80/metrics", "the port is not a number"),
            ("::1", "an IPv6 address needs brackets"),
            ("::1:80", "an IPv6 address needs brackets"),
            ("[]:80", "the brackets are wrong"),
            ("[::1:80", "the brackets are wrong"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.what.starts_with(&format!("\"{text}\" is not an address: {why}")), "{error}");
            assert!(error.hint.contains("--listen 127.0.0.1:9864"));
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_one_clear_error() {
        let listen = |text: &str| Address::parse(text).unwrap().listen();
        let (_listener, address) = listen("127.0.0.1:0").unwrap();
        let error = listen(&address.to_string()).unwrap_err();
        assert_eq!(error.what, format!("could not listen on {address}: Address already in use"));
        assert!(error.hint.contains(&format!("ss -ltnp 'sport = :{}'", address.port())), "{}", error.hint);
        // A documentation address: RFC 5737.
        let error = listen("192.0.2.1:9864").unwrap_err();
        assert!(error.what.starts_with("could not listen on 192.0.2.1:9864: "), "{error}");
        let error = listen("no-such-host.invalid:9864").unwrap_err();
        assert!(error.what.starts_with("could not listen on \"no-such-host.invalid\": "), "{error}");
        assert!(!error.what.contains('\n') && error.hint.starts_with("use an IP address"));
    }

    #[test]
    fn each_kind_of_error_has_its_hint() {
        assert!(hint(ErrorKind::PermissionDenied, 80).contains("CAP_NET_BIND_SERVICE"));
        assert!(hint(ErrorKind::AddrNotAvailable, 80).contains("ip address"));
    }
}
