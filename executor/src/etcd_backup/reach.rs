//! How an endpoint of etcd is reached: by a connection, or by a port of its Pod that the API of its cluster forwards.

use std::io;
use std::time::Duration;

use crds::backup::{EtcdInputs, HOST_KUBECONFIG_SECRET};
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::inputs::address;
use crate::secrets::Secrets;

/// Until an endpoint accepts a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection, however it came about.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// How the endpoints of one etcd are reached.
#[derive(Clone)]
pub(super) enum Reach {
    /// As their URLs say.
    Direct,
    /// Through this API, to the Pods of this namespace.
    Forwarded(Client, String),
}

impl Reach {
    /// As the inputs say. Called within a runtime. Errors: the kubeconfig of the run's Secret makes no client.
    pub async fn new(etcd: Option<&EtcdInputs>, secrets: &Secrets) -> io::Result<Self> {
        let Some(namespace) = etcd.and_then(|etcd| etcd.forwarded_in.clone()) else { return Ok(Self::Direct) };
        let text = String::from_utf8_lossy(secrets.get(HOST_KUBECONFIG_SECRET).unwrap_or_default()).into_owned();
        let kubeconfig = Kubeconfig::from_yaml(&text).map_err(io::Error::other)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(io::Error::other)?;
        config.connect_timeout = Some(CONNECT);
        // A snapshot may be long in coming.
        config.read_timeout = None;
        Ok(Self::Forwarded(Client::try_from(config).map_err(io::Error::other)?, namespace))
    }

    /// A connection to the endpoint with this URL.
    pub async fn dial(self, url: String) -> io::Result<Box<dyn Connection>> {
        let address = address(&url).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        match self {
            Self::Direct => {
                let stream = timeout(CONNECT, TcpStream::connect(address)).await??;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Forwarded(client, namespace) => {
                let (pod, port) = pod(address).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
                let pods: Api<Pod> = Api::namespaced(client, &namespace);
                let forwarded = timeout(CONNECT, pods.portforward(pod, &[port])).await?;
                let mut forwarded = forwarded.map_err(io::Error::other)?;
                let stream = forwarded.take_stream(port).ok_or_else(|| io::Error::other("no port is forwarded"))?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// The Pod and the port of `HOST:PORT`, whose host begins with the Pod's name.
fn pod(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host.split('.').next()?, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::pod;

    #[test]
    fn the_host_of_an_endpoint_begins_with_the_name_of_its_pod() {
        let of_member = "k1-etcd-2.k1-etcd-peers.planes.svc.cluster.local:2379";
        assert_eq!(pod(of_member), Some(("k1-etcd-2", 2379)));
        assert_eq!(pod("k1-etcd-2"), None);
    }
}
