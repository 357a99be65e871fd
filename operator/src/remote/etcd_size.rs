//! Size of a cluster's etcd, as its API server tells it among its metrics. These are megabytes, in the order of their
//! names: what comes after it is not read.

use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use futures::stream::StreamExt;
use kube::Client;

/// How often it is asked for: a thousand clusters are.
pub(crate) const PERIOD_MINUTES: i64 = 10;
const DEADLINE: Duration = Duration::from_secs(10);
const NAME: &str = "apiserver_storage_size_bytes";
/// More metrics than any API server has.
const MOST: u64 = 256 << 20;

/// Asks for it; none: it does not say, does not allow it, or is too slow.
pub(crate) async fn etcd_size(client: &Client) -> Option<i64> {
    let request = http::Request::get("/metrics").body(Vec::new()).ok()?;
    let read = async {
        let metrics = client.request_stream(request).await.ok()?;
        read(Box::pin(metrics)).await
    };
    tokio::time::timeout(DEADLINE, read).await.ok().flatten()
}

/// The largest that the metrics tell of.
async fn read(metrics: impl AsyncBufRead + Unpin) -> Option<i64> {
    let mut lines = metrics.take(MOST).lines();
    let mut largest = None;
    while let Some(Ok(line)) = lines.next().await {
        match value(&line) {
            Some(size) => largest = largest.max(Some(size)),
            None if largest.is_some() => break,
            None => {}
        }
    }
    largest
}

/// The value of a line `apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} 2.1e+07`.
fn value(line: &str) -> Option<i64> {
    let rest = line.strip_prefix(NAME)?;
    let is_whole = rest.starts_with(['{', ' ']);
    let value: f64 = rest.rsplit(' ').next()?.parse().ok()?;
    (is_whole && value.is_finite() && value > 0.0).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::read;
    use futures::executor::block_on;
    use futures::io::{AsyncReadExt, BufReader, Cursor};

    fn size(text: &str) -> Option<i64> {
        block_on(read(BufReader::new(Cursor::new(text.as_bytes().to_vec()))))
    }

    #[test]
    fn the_largest_size_among_the_metrics_counts() {
        let head = "# TYPE apiserver_storage_objects gauge\napiserver_storage_objects{resource=\"pods\"} 9\n";
        let sizes = "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} 2.1e+07\n\
                     apiserver_storage_size_bytes{storage_cluster_id=\"etcd-1\"} 1024\n";
        assert_eq!(size(&format!("{head}{sizes}apiserver_z 7\n")), Some(21_000_000));
        assert_eq!(size(head), None);
        assert_eq!(size("apiserver_storage_size_bytes_total{} 7\n"), None);
        assert_eq!(size("apiserver_storage_size_bytes NaN\napiserver_storage_size_bytes -1\n"), None);
        assert_eq!(size("apiserver_storage_size_bytes 4096"), Some(4096));
    }

    #[test]
    fn what_comes_after_it_is_not_read() {
        let text = b"apiserver_storage_size_bytes 4096\nother 1\n".to_vec();
        let never = futures::io::BufReader::new(Cursor::new(text).chain(Unread));
        assert_eq!(block_on(read(never)), Some(4096));
    }

    /// It fails whoever reads it.
    struct Unread;

    impl futures::io::AsyncRead for Unread {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut [u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            panic!("it was read to the end");
        }
    }
}
