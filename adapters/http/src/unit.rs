//! What a quota counts.

use core::fmt;

/// What a quota counts: the parameter `qu` of `RateLimit-Policy`.
///
/// Units compare by variant: make one of a text by `from`, which knows those that have a name.
///
/// ```
/// use sluicegate_http::QuotaUnit;
///
/// assert_eq!(QuotaUnit::from("content-bytes"), QuotaUnit::ContentBytes);
/// assert_eq!(QuotaUnit::from("acme-tokens").as_str(), "acme-tokens");
/// assert_eq!(QuotaUnit::default(), QuotaUnit::Requests);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuotaUnit {
    /// `requests`, which is meant where nothing is said.
    #[default]
    Requests,
    /// `content-bytes`: bytes of content.
    ContentBytes,
    /// `concurrent-requests`: requests that are under way at once.
    ConcurrentRequests,
    /// Any other, as a service documents it.
    Other(String),
}

impl QuotaUnit {
    /// As headers have it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Requests => REQUESTS,
            Self::ContentBytes => CONTENT_BYTES,
            Self::ConcurrentRequests => CONCURRENT_REQUESTS,
            Self::Other(unit) => unit,
        }
    }
}

impl From<&str> for QuotaUnit {
    fn from(unit: &str) -> Self {
        match unit {
            REQUESTS => Self::Requests,
            CONTENT_BYTES => Self::ContentBytes,
            CONCURRENT_REQUESTS => Self::ConcurrentRequests,
            _ => Self::Other(unit.into()),
        }
    }
}

impl fmt::Display for QuotaUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const REQUESTS: &str = "requests";
const CONTENT_BYTES: &str = "content-bytes";
const CONCURRENT_REQUESTS: &str = "concurrent-requests";
