//! A small program on a loopback address that talks like a PostgreSQL server, and can send anything.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Messages of the protocol: <https://www.postgresql.org/docs/current/protocol-message-formats.html>
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

pub fn parameter(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

pub fn notice(text: &str) -> Vec<u8> {
    message(b'N', format!("SWARNING\0C01000\0M{text}\0\0").as_bytes())
}

pub fn error(text: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C42000\0M{text}\0D{text}\0H{text}\0\0").as_bytes())
}

pub fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// The messages until the session is open.
pub fn welcome() -> Vec<u8> {
    welcome_with(&[])
}

/// The same with a notice.
pub fn welcome_with(notice: &[u8]) -> Vec<u8> {
    [
        message(b'R', &0u32.to_be_bytes()),
        notice.to_vec(),
        parameter("server_version", "18.0"),
        parameter("client_encoding", "UTF8"),
        message(b'K', &[0, 0, 16, 0, 0, 0, 0, 1]),
        ready(),
    ]
    .concat()
}

/// One text column, and rows with this value.
pub fn column() -> Vec<u8> {
    let head = [&b"\0\x01x\0"[..], &[0; 6], &25u32.to_be_bytes(), &[255, 255], &[255; 4], &[0, 0]].concat();
    [message(b'1', b""), message(b'2', b""), message(b'T', &head)].concat()
}

pub fn row(value: &[u8]) -> Vec<u8> {
    message(b'D', &[&1u16.to_be_bytes()[..], &(value.len() as u32).to_be_bytes(), value].concat())
}

/// The answer to a statement without rows.
pub fn done() -> Vec<u8> {
    [message(b'1', b""), message(b'2', b""), message(b'n', b""), message(b'C', b"SET\0"), ready()].concat()
}

/// Reads the startup message. Encryption is refused. Returns false for a cancel request.
pub fn start(stream: &mut TcpStream) -> bool {
    loop {
        let mut head = [0; 8];
        if stream.read_exact(&mut head).is_err() {
            return false;
        }
        let length = u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
        let code = u32::from_be_bytes(head[4..].try_into().unwrap());
        let mut rest = vec![0; length - 8];
        _ = stream.read_exact(&mut rest);
        match code {
            80_877_103 | 80_877_104 => stream.write_all(b"N").unwrap(),
            80_877_102 => return false,
            _ => return true,
        }
    }
}

/// Reads one statement, up to the client's Sync message. Returns false at the end of the session.
pub fn next_statement(stream: &mut TcpStream) -> bool {
    loop {
        let mut head = [0; 5];
        if stream.read_exact(&mut head).is_err() || head[0] == b'X' {
            return false;
        }
        let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
        _ = stream.read_exact(&mut body);
        if head[0] == b'S' {
            return true;
        }
    }
}

/// Keeps the connection open until the client closes it.
pub fn stay_silent(stream: &mut TcpStream) {
    while stream.read(&mut [0; 512]).is_ok_and(|n| n > 0) {}
}

pub fn send_forever(stream: &mut TcpStream, part: &[u8]) {
    while stream.write_all(part).is_ok() {}
}

/// Starts a server whose sessions run `session`. Cancel requests get no answer. Returns its port.
pub fn server(session: impl Fn(&mut TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = session.clone();
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                match start(&mut stream) {
                    true => session(&mut stream),
                    false => stay_silent(&mut stream),
                }
            });
        }
    });
    port
}
