//! Decides the answer to a request. Nothing here reads or writes.

use std::sync::Arc;

/// Limit for the request line and the headers together. Prometheus sends about 300 bytes. Apache and nginx have the same
/// limit.
pub const MAX_HEADER: usize = 8 * 1024;

/// Limit for the number of headers. Prometheus sends five, and proxies add some.
const MAX_HEADERS: usize = 64;

const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

const START_PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>pg_timing</title></head>\n\
    <body><h1>pg_timing monitor</h1><p><a href=\"/metrics\">Metrics</a> of this host's clocks, for Prometheus.</p></body></html>\n";

/// A status code and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub &'static str, &'static str);

impl Status {
    const OK: Status = Status("200", "OK");
    const BAD_REQUEST: Status = Status("400", "Bad Request");
    const NOT_FOUND: Status = Status("404", "Not Found");
    const METHOD_NOT_ALLOWED: Status = Status("405", "Method Not Allowed");
    const TIMEOUT: Status = Status("408", "Request Timeout");
    const TOO_LARGE: Status = Status("413", "Content Too Large");
    const HEADERS_TOO_LARGE: Status = Status("431", "Request Header Fields Too Large");
    const UNAVAILABLE: Status = Status("503", "Service Unavailable");
    const VERSION: Status = Status("505", "HTTP Version Not Supported");
}

/// An answer. The connection is closed after it.
#[derive(Debug)]
pub struct Answer {
    pub status: Status,
    pub head: String,
    /// empty for HEAD
    pub body: Arc<str>,
}

impl Answer {
    /// Returns the answer to a client that did not send its request in time.
    pub fn timeout() -> Answer {
        Answer::error(Status::TIMEOUT, true)
    }

    fn new(status: Status, content_type: &str, body: Arc<str>, with_body: bool) -> Answer {
        let Status(code, name) = status;
        let allow = if status == Status::METHOD_NOT_ALLOWED { "Allow: GET, HEAD\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {code} {name}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        );
        Answer { status, head, body: if with_body { body } else { "".into() } }
    }

    fn error(status: Status, with_body: bool) -> Answer {
        let text = match status {
            Status::UNAVAILABLE => "There is no sample yet.\n".to_string(),
            Status(code, name) => format!("{code} {name}\n"),
        };
        Answer::new(status, TEXT, text.into(), with_body)
    }
}

/// Returns the answer to the bytes that were received so far. `None` if the request is not complete.
pub fn answer(received: &[u8], page: impl Fn() -> Arc<str>) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let status = match request.parse(received) {
        Ok(httparse::Status::Complete(_)) => return Some(complete(&request, page)),
        Ok(httparse::Status::Partial) if received.len() < MAX_HEADER => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => Status::HEADERS_TOO_LARGE,
        Err(httparse::Error::Version) => Status::VERSION,
        Err(_) => Status::BAD_REQUEST,
    };
    Some(Answer::error(status, true))
}

fn complete(request: &httparse::Request, page: impl Fn() -> Arc<str>) -> Answer {
    let with_body = request.method != Some("HEAD");
    let values = |name: &'static str| request.headers.iter().filter(move |h| h.name.eq_ignore_ascii_case(name));
    let has_body =
        values("Content-Length").any(|length| length.value != b"0") || values("Transfer-Encoding").next().is_some();
    let status = match (request.method, path(request.path.unwrap_or_default())) {
        // HTTP/1.1 requires the header Host once, so that a misunderstood request is noticed.
        _ if request.version == Some(1) && values("Host").count() != 1 => Status::BAD_REQUEST,
        (Some("GET" | "HEAD"), _) if has_body => Status::TOO_LARGE,
        (Some("GET" | "HEAD"), "/") => return Answer::new(Status::OK, HTML, START_PAGE.into(), with_body),
        (Some("GET" | "HEAD"), "/metrics") => match page() {
            page if page.is_empty() => Status::UNAVAILABLE,
            page => return Answer::new(Status::OK, METRICS, page, with_body),
        },
        (Some("GET" | "HEAD"), _) => Status::NOT_FOUND,
        _ => Status::METHOD_NOT_ALLOWED,
    };
    Answer::error(status, with_body)
}

/// Returns the path of a request's target, which can also be a whole URL.
fn path(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            rest.find('/').map_or("/", |slash| &rest[slash..])
        }
        _ => target,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer_to(request: &str) -> Option<Answer> {
        answer(request.as_bytes(), || "metrics\n".into())
    }

    fn code(request: &str) -> &'static str {
        answer_to(request).map_or("incomplete", |answer| answer.status.0)
    }

    #[test]
    fn a_scrape_gets_the_page() {
        let answer = answer_to("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n").unwrap();
        assert_eq!((answer.status, &*answer.body), (Status::OK, "metrics\n"));
        assert!(answer.head.starts_with("HTTP/1.1 200 OK\r\n") && answer.head.ends_with("\r\n\r\n"));
        for line in ["Content-Type: text/plain; version=0.0.4; charset=utf-8", "Content-Length: 8", "Connection: close"]
        {
            assert!(answer.head.contains(&format!("\r\n{line}\r\n")), "{}", answer.head);
        }
    }

    #[test]
    fn each_request_has_its_status() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.0\r\n\r\n", "200"),
            ("GET /metrics?a=b HTTP/1.1\r\nhost: a\r\n\r\n", "200"),
            ("GET http://a:9864/metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
            ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "200"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n", "200"),
            ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET //metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET /../metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET ftp://a/metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "405"),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
            ("get /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
            ("GET /metrics\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", "400"),
            ("\x16\x03\x01\x02\0\x01\0", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", "413"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "413"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
            ("", "incomplete"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n", "incomplete"),
        ] {
            assert_eq!(code(request), expected, "{request:?}");
        }
    }

    #[test]
    fn head_has_the_headers_of_get_and_no_body() {
        for path in ["/metrics", "/", "/other"] {
            let of = |method: &str| answer_to(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
            let (get, head) = (of("GET"), of("HEAD"));
            assert_eq!(get.head, head.head);
            assert!(get.head.contains(&format!("Content-Length: {}\r\n", get.body.len())) && head.body.is_empty());
        }
    }

    #[test]
    fn other_methods_learn_which_are_allowed() {
        let answer = answer_to("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(answer.head.contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(START_PAGE.contains("href=\"/metrics\""));
    }

    #[test]
    fn large_headers_are_refused() {
        let request = |size: usize| format!("GET /metrics HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(size));
        assert_eq!(code(&request(8000)), "incomplete");
        assert_eq!(code(&request(MAX_HEADER)), "431");
        let many = "X: y\r\n".repeat(MAX_HEADERS);
        assert_eq!(code(&format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{many}\r\n")), "431");
    }

    #[test]
    fn without_a_sample_there_is_no_page() {
        let answer = answer(b"GET /metrics HTTP/1.0\r\n\r\n", || "".into()).unwrap();
        assert_eq!((answer.status.0, &*answer.body), ("503", "There is no sample yet.\n"));
    }

    proptest! {
        /// No bytes lead to a panic, and MAX_HEADER bytes always lead to an answer.
        #[test]
        fn any_bytes_have_an_answer(
            line in "(GET|HEAD|POST|[ -~]{0,9})? ?(/|/metrics|[ -~]{0,20})? ?(HTTP/1\\.[01])?\r?\n?",
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = line.into_bytes();
            bytes.extend(rest);
            let early = answer(&bytes, || "page".into());
            if let Some(answer) = &early {
                prop_assert!(answer.head.ends_with("\r\n\r\n"));
            }
            bytes.resize(MAX_HEADER, b'x');
            prop_assert!(answer(&bytes, || "page".into()).is_some());
        }
    }
}
