//! A port that no sandbox may reach: runtimes probe it to see whether their network policy works.

use crate::bounds;
use tokio::net::TcpListener;

/// Accepts and closes, for ever.
pub(crate) async fn serve(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => drop(socket),
            Err(error) => {
                tracing::warn!(%error, "canary cannot accept");
                tokio::time::sleep(bounds::ACCEPT_PAUSE).await;
            }
        }
    }
}
