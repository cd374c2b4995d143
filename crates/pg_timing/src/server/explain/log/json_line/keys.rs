//! The keys of a line in JSON format that matter here: those of the server, of containers, journald and log collectors.

use serde::Deserialize;
use std::borrow::Cow;

/// The keys that contain the server's message.
#[derive(Deserialize)]
pub struct Keys<'a> {
    /// Docker's json-file, and log collectors
    #[serde(borrow, default)]
    log: Option<Cow<'a, str>>,
    /// of log collectors on a Kubernetes node: `P` is a part of a line, and `F` is its end
    #[serde(borrow, default)]
    logtag: Option<Cow<'a, str>>,
    /// journalctl -o json
    #[serde(borrow, default, rename = "MESSAGE")]
    journald: Option<Journald<'a>>,
    #[serde(borrow, default, rename = "_PID")]
    pub pid: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "_HOSTNAME")]
    hostname: Option<TextOrOther<'a>>,
    /// of log collectors
    #[serde(borrow, default)]
    kubernetes: Option<PodOrOther<'a>>,
    /// Google Cloud
    #[serde(borrow, default, rename = "textPayload")]
    google: Option<Cow<'a, str>>,
    /// the server's jsonlog, and the Elastic Common Schema
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    /// CloudNativePG writes the server's jsonlog as an object within its own
    #[serde(borrow, default)]
    pub record: Option<Box<Keys<'a>>>,
    /// CloudNativePG's name of the server
    #[serde(borrow, default)]
    pub logging_pod: Option<TextOrOther<'a>>,
    #[serde(default)]
    pub query_id: Option<NumberOrText>,
    #[serde(borrow, default)]
    pub session_id: Option<TextOrOther<'a>>,
    #[serde(borrow, default)]
    pub context: Option<TextOrOther<'a>>,
    /// the client's command; the second name is CloudNativePG's
    #[serde(borrow, default, alias = "command_tag")]
    pub ps: Option<TextOrOther<'a>>,
    /// the virtual transaction identifier; the second name is CloudNativePG's
    #[serde(borrow, default, alias = "virtual_transaction_id")]
    pub vxid: Option<TextOrOther<'a>>,
    /// the second name is CloudNativePG's
    #[serde(borrow, default, alias = "log_time")]
    pub timestamp: Option<TextOrOther<'a>>,
}

/// A collector may use the server's key for something else.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum TextOrOther<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(serde::de::IgnoredAny),
}

impl<'a> TextOrOther<'a> {
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            TextOrOther::Text(text) => Some(text),
            TextOrOther::Other(_) => None,
        }
    }
}

/// What Fluent Bit and Fluentd know about a container of Kubernetes.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum PodOrOther<'a> {
    Pod {
        #[serde(borrow, default)]
        pod_name: Option<Cow<'a, str>>,
    },
    Other(serde::de::IgnoredAny),
}

/// A message of journald. If it is not UTF-8, journalctl writes its bytes.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Journald<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Bytes(Vec<u8>),
}

impl<'a> Journald<'a> {
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Journald::Text(text) => text,
            Journald::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
        }
    }
}

/// Some collectors write numbers as strings.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum NumberOrText {
    Number(i64),
    Text(String),
}

/// Docker splits lines at this length. Only the last part has a line end. Log collectors remove all line ends.
pub const DOCKER_PART_BYTES: usize = 16 << 10;

impl<'a> Keys<'a> {
    /// Returns whether more of the line follows.
    pub fn is_unfinished(&self) -> bool {
        match (&self.logtag, &self.log) {
            (Some(tag), _) => tag == "P",
            (None, Some(text)) => !text.ends_with('\n') && text.len() >= DOCKER_PART_BYTES,
            (None, None) => false,
        }
    }

    /// Returns the host or the pod that wrote the line.
    pub fn host(&mut self) -> Option<Cow<'a, str>> {
        let pod = match self.kubernetes.take() {
            Some(PodOrOther::Pod { pod_name }) => pod_name,
            _ => None,
        };
        pod.or_else(|| self.logging_pod.take().and_then(TextOrOther::text))
            .or_else(|| self.hostname.take().and_then(TextOrOther::text))
    }

    pub fn text(self) -> Option<Cow<'a, str>> {
        let of_record = || self.record.and_then(|record| record.text());
        self.log.or(self.journald.map(Journald::text)).or(self.google).or(self.message).or_else(of_record)
    }

    pub fn query_id(&self) -> Option<i64> {
        let id = match &self.query_id {
            Some(NumberOrText::Number(id)) => Some(*id),
            Some(NumberOrText::Text(id)) => id.parse().ok(),
            None => None,
        };
        id.filter(|id| *id != 0)
    }
}
