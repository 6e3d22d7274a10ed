//! Starting a simulated ZVM.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;

use super::{Published, Sim, SimError};
use crate::app::{self, App, Parts};
use crate::clock::Clock;
use crate::guest::Guests;
use crate::http::Connection;
use crate::inventory;
use crate::scenario::Scenario;
use crate::tls;
use crate::world::World;

/// How to start a [`Sim`].
#[derive(Clone, Debug, Default)]
pub struct SimBuilder {
    scenario: Scenario,
    data: Option<PathBuf>,
    listen: Option<SocketAddr>,
    control: bool,
}

impl SimBuilder {
    /// What is simulated; [`Scenario::default`] if it is not given.
    #[must_use]
    pub fn scenario(mut self, scenario: Scenario) -> Self {
        self.scenario = scenario;
        self
    }

    /// A folder to keep the guests and the certificate in; a temporary one if it is not given.
    #[must_use]
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Where to listen; a free port of 127.0.0.1 if it is not given.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Whether `/sim/…` is served. It needs no login.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Starts it. When this returns, it answers.
    ///
    /// # Errors
    /// See [`SimError`].
    pub async fn start(self) -> Result<Sim, SimError> {
        let address = self
            .listen
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = listen(address)?;
        let address = listener.local_addr().unwrap_or(address);
        let credentials = self.scenario.credentials.clone();
        let prepare = move || prepare(self, address);
        let (app, identity, data) = tokio::task::spawn_blocking(prepare).await??;
        let tls = RustlsConfig::from_config(identity.config);
        let handle = Handle::new();
        let server = axum_server::from_tcp_rustls(listener, tls.clone())
            .map_err(|source| SimError::Listen { address, source })?
            .handle(handle.clone());
        let mut jobs = app::run(&app);
        let connections = tower::make::Shared::new(Connection::new(&app));
        jobs.spawn(async move {
            if let Err(error) = server.serve(connections).await {
                tracing::error!(%error, "the server stopped");
            }
        });
        Ok(Sim {
            app,
            identity: Published {
                ca_file: identity.ca_file,
                fingerprint: identity.fingerprint,
            },
            credentials,
            handle,
            tls,
            data,
            address,
            jobs,
        })
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, SimError> {
    TcpListener::bind(address).map_err(|source| SimError::Listen { address, source })
}

fn prepare(
    builder: SimBuilder,
    address: SocketAddr,
) -> Result<(Arc<App>, tls::Identity, PathBuf), SimError> {
    let inventory = inventory::build(&builder.scenario)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| SimError::Folder { path, source }
    };
    let (folder, data) = match &builder.data {
        Some(data) => (None, data.clone()),
        None => {
            let temporary = std::env::temp_dir();
            let folder = tempfile::Builder::new()
                .prefix("zvm-sim-")
                .tempdir()
                .map_err(failed(&temporary))?;
            let data = folder.path().to_owned();
            (Some(folder), data)
        }
    };
    std::fs::create_dir_all(&data).map_err(failed(&data))?;
    let identity = tls::identity(&data, address.ip())?;
    let guests_dir = data.join("guests");
    std::fs::create_dir_all(&guests_dir).map_err(failed(&guests_dir))?;
    let guests = Guests::create(&inventory, &guests_dir, &data.join("disks"))?;
    // The clock starts when the disks are there, so that the first checkpoint is right after the past.
    let clock = Clock::new();
    let world = World::new(&builder.scenario, &inventory, clock.start_ms());
    let app = App::new(Parts {
        inventory,
        guests,
        clock,
        timings: builder.scenario.timings,
        world,
        url: url(address),
        control: builder.control,
        guests_dir,
        folder,
    });
    Ok((app, identity, data))
}

fn url(address: SocketAddr) -> String {
    let reachable = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => {
            SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
        }
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()))
        }
        _ => address,
    };
    format!("https://{reachable}")
}
