//! Who may come in: a browser page of another origin, or one that has rebound its name to this host, may not.
use axum::http::{HeaderMap, Uri, header};
use url::{Host, Url};

use super::upstream::is_loopback;

/// Why a request is not let in.
pub fn refused(uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    let named = headers
        .get_all(header::HOST)
        .iter()
        .map(|host| host.to_str().unwrap_or_default());
    let mut hosts = named
        .chain(uri.authority().map(|authority| authority.as_str()))
        .peekable();
    if hosts.peek().is_none() || !hosts.all(|host| is_here(&format!("http://{host}/"))) {
        return Some("the Host header names another host");
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    if !origins.all(|origin| origin.to_str().is_ok_and(is_here)) {
        return Some("the Origin is another host");
    }
    None
}

fn is_here(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none();
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => is_loopback(ip.into()),
        Some(Host::Ipv6(ip)) => is_loopback(ip.into()),
        None => false,
    };
    plain && here && matches!(url.scheme(), "http" | "https")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn check(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
        }
        refused(&Uri::from_static("/mcp"), &headers).is_none()
    }

    #[test]
    fn only_this_host_comes_in() {
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]:9",
            "LOCALHOST",
        ] {
            assert!(check(Some(host), None), "{host}");
            assert!(check(Some(host), Some(&format!("http://{host}"))), "{host}");
        }
        for host in [
            "example.com",
            "localhost.example.com",
            "10.0.0.1:80",
            "",
            "localhost@example.com",
            "example.com#localhost",
            "localhost/x",
            "0.0.0.0",
        ] {
            assert!(!check(Some(host), None), "{host}");
        }
        assert!(!check(None, None));
        for origin in [
            "null",
            "http://example.com",
            "http://localhost.example.com",
            "file://",
            "",
            "http://127.0.0.1.nip.io",
        ] {
            assert!(!check(Some("localhost"), Some(origin)), "{origin}");
        }
        let mut twice = HeaderMap::new();
        twice.append(header::HOST, HeaderValue::from_static("localhost"));
        twice.append(header::HOST, HeaderValue::from_static("example.com"));
        assert!(refused(&Uri::from_static("/mcp"), &twice).is_some());
        twice.remove(header::HOST);
        twice.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(refused(&Uri::from_static("http://example.com/mcp"), &twice).is_some());
    }
}
