//! The example's endpoint, scraped over HTTP, on a clock that the test moves.
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use metrics_exporter_prometheus::PrometheusBuilder;
use sluicegate_telemetry::{ManualClock, describe};
use tokio::net::TcpListener;

#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../examples/prometheus.rs"]
mod example;

/// What the endpoint answers: its head, and every sample.
fn scrape(address: SocketAddr) -> (String, BTreeMap<String, f64>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines = body.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    (head.to_owned(), samples.collect())
}

#[test]
fn c16_a_prometheus_endpoint_is_scraped() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).unwrap();
    describe();
    let clock = Arc::new(ManualClock::new());
    let api = example::Api::new(clock.clone());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    // It serves until the process ends.
    thread::spawn(move || runtime.block_on(example::serve(listener, handle)));

    api.look();
    assert_eq!((0..250).filter(|_| api.request()).count(), 200);
    api.look();
    let (head, samples) = scrape(address);
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain"), "{head}");
    let expected = [
        ("sluicegate_requests_total{limiter=\"api\",outcome=\"admitted\"}", 200.0),
        ("sluicegate_requests_total{limiter=\"api\",outcome=\"denied\"}", 50.0),
        ("sluicegate_cost_total{limiter=\"api\",outcome=\"denied\"}", 50.0),
        ("sluicegate_fill_ratio{limiter=\"api\"}", 0.0),
        ("sluicegate_limit_tokens{limiter=\"api\"}", 200.0),
        ("sluicegate_limit_tokens_per_second{limiter=\"api\"}", 100.0),
        ("sluicegate_alert_active{limiter=\"api\",alert=\"rejections\"}", 1.0),
        ("sluicegate_alert_active{limiter=\"api\",alert=\"low_fill\"}", 1.0),
        ("sluicegate_alert_active{limiter=\"api\",alert=\"slow_recovery\"}", 0.0),
    ];
    for (name, value) in expected {
        assert_eq!(samples.get(name), Some(&value), "{name}");
    }

    // Half a minute and a little later it was not asked again, and is full.
    clock.advance(Duration::from_secs(31));
    api.look();
    let (_, samples) = scrape(address);
    assert_eq!(samples["sluicegate_fill_ratio{limiter=\"api\"}"], 1.0);
    assert_eq!(samples["sluicegate_alert_active{limiter=\"api\",alert=\"low_fill\"}"], 0.0);
    assert_eq!(samples["sluicegate_alert_active{limiter=\"api\",alert=\"rejections\"}"], 1.0, "in the last minute");
    clock.advance(Duration::from_secs(31));
    api.look();
    assert_eq!(scrape(address).1["sluicegate_alert_active{limiter=\"api\",alert=\"rejections\"}"], 0.0);
}
