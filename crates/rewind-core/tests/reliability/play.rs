//! Plays a row and judges it.
use crate::{
    clock::simulated,
    guard, recovery,
    row::{Expected, Operation, Outcome, Row, Trouble},
    world::World,
};
use rewind_core::Error;
use std::{fmt, pin::pin, time::Duration};
use tokio::time::{Instant, timeout};

/// With a tenth of the time: what a busy machine does meanwhile passes for simulated time.
const SLACK: Duration = Duration::from_secs(5);

/// What is wrong; nothing, as a rule.
#[derive(Default)]
pub struct Wrong {
    what: Vec<String>,
    late: Option<Duration>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what.join("; "))?;
        match self.late {
            Some(took) => write!(f, " took {} s", took.as_secs_f64()),
            None => Ok(()),
        }
    }
}

impl Wrong {
    pub fn panicked() -> Self {
        Self {
            what: vec!["it panicked".to_owned()],
            late: None,
        }
    }

    pub fn is_right(&self) -> bool {
        self.what.is_empty() && self.late.is_none()
    }

    /// That it took too long is all that is wrong.
    pub fn is_late(&self) -> bool {
        self.what.is_empty() && self.late.is_some()
    }

    pub fn unless(&mut self, right: bool, wrong: impl FnOnce() -> String) {
        if !right {
            self.what.push(wrong());
        }
    }

    pub fn outcome(&mut self, expected: Expected, was: Result<Outcome, &Error>, took: Duration) {
        let same = match (expected.outcome, was) {
            (Outcome::Fails(code), Err(error)) => code == error.code,
            (expected, Ok(was)) => expected == was,
            _ => false,
        };
        self.unless(same, || match was {
            Ok(was) => format!("{was:?}"),
            Err(error) => format!("{}: {}", error.code.as_str(), error.message),
        });
        let within = Duration::from_secs(expected.within);
        self.late = Some(took).filter(|took| *took > within + SLACK + within / 10);
        // A bound that is far off says nothing.
        let useful = Duration::from_secs(expected.within.saturating_sub(10)) <= took.mul_f64(2.5);
        self.unless(useful, || format!("{} s only", took.as_secs_f64()));
        if let Err(error) = was {
            let said = !error.message.is_empty() && !error.next.is_empty();
            self.unless(said, || "it says nothing".to_owned());
        }
    }
}

pub fn play(row: &Row) -> Wrong {
    let proxied = match row.trouble {
        Trouble::Fault { fault, .. } => fault.needs_proxy(),
        Trouble::Case { .. } => false,
    };
    simulated(async |clock| {
        let world = World::new(row.operation, proxied, clock).await;
        let mut wrong = Wrong::default();
        let judging = async {
            match row.operation {
                Operation::Guard => guard::judge(&world, row, &mut wrong).await,
                Operation::Recovery => recovery::judge(&world, row, &mut wrong).await,
            }
        };
        let long = Duration::from_secs(2 * row.expected.within + 300);
        if timeout(long, judging).await.is_err() {
            wrong.unless(false, || format!("it is not over after {long:?}"));
        }
        wrong
    })
}

/// Runs an operation with its trouble, and says how long it took.
pub async fn troubled<T>(
    world: &World,
    trouble: Trouble,
    wrong: &mut Wrong,
    operation: impl AsyncFnOnce(&World) -> T,
) -> (T, Duration) {
    let (step, happens) = match trouble {
        Trouble::Fault {
            step,
            fault,
            lasting,
        } => (Some(step), !fault.prepare(world, step, lasting).await),
        Trouble::Case {
            play: (None, play), ..
        } => {
            play(world);
            (None, false)
        }
        Trouble::Case {
            play: (Some(step), _),
            ..
        } => (Some(step), true),
    };
    let began = Instant::now();
    let mut happened = !happens;
    let result = {
        let mut operation = pin!(operation(world));
        let mut before = pin!(async {
            if let Some(step) = step {
                world.before(step).await;
            }
        });
        loop {
            tokio::select! {
                biased;
                () = &mut before, if !happened => {
                    happened = true;
                    match trouble {
                        Trouble::Fault { fault, .. } => fault.happen(world),
                        Trouble::Case { play: (_, play), .. } => play(world),
                    }
                }
                result = &mut operation => break result,
            }
        }
    };
    let took = began.elapsed();
    let met = match trouble {
        Trouble::Fault { fault, .. } => fault.met(world) && happened,
        Trouble::Case { .. } => happened,
    };
    wrong.unless(met, || "the fault was not met".to_owned());
    (result, took)
}
