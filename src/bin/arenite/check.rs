//! stub
use super::output::Done;
/// Check a plan
#[derive(clap::Args)]
pub struct Args {}
pub fn run(_: &Args) -> Done<std::process::ExitCode> {
    Ok(std::process::ExitCode::SUCCESS)
}
