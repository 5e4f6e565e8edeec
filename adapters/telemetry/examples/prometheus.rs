//! A limiter in use, with a Prometheus endpoint and alerts.
//!
//! ```sh
//! cargo run -p sluicegate-telemetry --features metrics --example prometheus -- 127.0.0.1:9898
//! curl http://127.0.0.1:9898/metrics
//! ```
#![allow(clippy::std_instead_of_alloc, reason = "it runs on a host")]

use core::convert::Infallible;
use core::error::Error;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, io};

use hyper::header::CONTENT_TYPE;
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use sluicegate_telemetry::{
    AlertPolicy, Alerts, Clock, Counters, MetricsAlerts, MetricsObserver, Nanos, Quota, TokenBucket, quota,
};
use sluicegate_threads::OsClock;
use tokio::net::TcpListener;
use tokio::time::interval;

const LIMIT: Quota = quota!("100/1s burst 200");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    sluicegate_telemetry::describe();

    let listener = TcpListener::bind(env::args().nth(1).unwrap_or("127.0.0.1:0".into())).await?;
    println!("http://{}/metrics", listener.local_addr()?);
    let api = Arc::new(Api::new(OsClock));
    tokio::spawn(every(Duration::from_secs(5), {
        let api = api.clone();
        move || api.look()
    }));
    // A little more than the limit admits.
    tokio::spawn(every(Duration::from_millis(100), move || (0..11).for_each(|_| _ = api.request())));
    Ok(serve(listener, handle).await?)
}

/// What is limited and watched.
pub(crate) struct Api<C> {
    limiter: TokenBucket<C, (Counters, MetricsObserver)>,
    alerts: Mutex<Alerts>,
    shown: MetricsAlerts,
}

impl<C: Clock> Api<C> {
    /// On `clock`, told to the recorder that is installed.
    pub(crate) fn new(clock: C) -> Self {
        let observer = (Counters::new(LIMIT), MetricsObserver::new("api", LIMIT));
        Self {
            limiter: TokenBucket::with_clock(LIMIT, clock).observed_by(observer),
            alerts: Mutex::new(Alerts::new(AlertPolicy::default())),
            shown: MetricsAlerts::new("api"),
        }
    }

    /// Whether a request may pass.
    pub(crate) fn request(&self) -> bool {
        self.limiter.try_acquire(1).is_ok()
    }

    /// Evaluates the alerts, every few seconds.
    pub(crate) fn look(&self) {
        let now: Nanos = self.limiter.clock().now();
        let (counters, metrics) = self.limiter.observer();
        let holds = self.limiter.inspect_at(now);
        metrics.show(&holds);
        let mut alerts = self.alerts.lock().unwrap_or_else(PoisonError::into_inner);
        for change in alerts.evaluate(now, &counters.snapshot(), holds) {
            self.shown.show(&change);
            eprintln!("{change}");
        }
    }
}

/// Answers every request with all metrics.
pub(crate) async fn serve(listener: TcpListener, metrics: PrometheusHandle) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let metrics = metrics.clone();
        let answer = service_fn(move |_| {
            let response = Response::builder().header(CONTENT_TYPE, "text/plain; version=0.0.4").body(metrics.render());
            async { response }
        });
        tokio::spawn(async move {
            if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await {
                eprintln!("{error}");
            }
        });
    }
}

/// Runs it again and again.
async fn every(period: Duration, run: impl Fn()) -> Infallible {
    let mut interval = interval(period);
    loop {
        interval.tick().await;
        run();
    }
}
