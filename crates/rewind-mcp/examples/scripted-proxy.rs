//! The proxy with the scripted stand-in of the tests: `scripted-proxy [--] COMMAND ARGS…`, or
//! `scripted-proxy --url URL [--listen ADDR]`. Events go to the file that `SCRIPT_LOG` names; tools whose names start
//! with what `SCRIPT_LISTED` says are listed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::{fs::OpenOptions, process::ExitCode};

use rewind_mcp::proxy::{Listener, MAX_MESSAGE, Settings, Upstream, bridge, relay};

#[path = "../tests/proxy_support/script.rs"]
mod script;

#[tokio::main]
async fn main() -> ExitCode {
    let log = std::env::var_os("SCRIPT_LOG").map(|path| {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap()
    });
    let script = script::Script::logging(log);
    if let Ok(listed) = std::env::var("SCRIPT_LISTED") {
        script.list_also(&listed);
    }
    let settings = Settings {
        name: None,
        longest: MAX_MESSAGE,
    };
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let mut command = std::env::args_os()
        .skip(1)
        .skip_while(|argument| argument == "--");
    let program = command.next().unwrap();
    if program != "--url" {
        let command = (program, command.collect());
        return match relay(script, settings, command, input, output).await {
            Ok(code) => code.into(),
            Err(error) => {
                eprintln!("{error}");
                error.exit_code().into()
            }
        };
    }
    let mut arguments = command.map(|argument| argument.into_string().unwrap());
    let upstream = Upstream::new(&arguments.next().unwrap(), Default::default()).unwrap();
    let Some(address) = arguments.nth(1) else {
        return bridge(script, settings, upstream, input, output)
            .await
            .into();
    };
    let listener = Listener::bind(address.parse().unwrap()).await.unwrap();
    println!(r#"{{"url":"{}"}}"#, listener.url(&upstream).unwrap());
    listener
        .serve(script, settings, upstream)
        .await
        .unwrap()
        .into()
}
