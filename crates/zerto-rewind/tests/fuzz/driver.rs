//! Feeds a target with its corpus and with mutations of it, for a bounded time, and watches what each input costs.
use std::{
    any::Any,
    collections::{HashSet, hash_map::DefaultHasher},
    env,
    fmt::Debug,
    fs,
    hash::{Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

/// In the suite, where `FUZZ_SECONDS` is not set.
const MOMENT: Duration = Duration::from_millis(300);
/// One input.
const SLOW: Duration = Duration::from_secs(5);
/// Nothing ends an input that hangs but the end of the process.
const HANGS: Duration = Duration::from_secs(20);
/// Of the whole process.
const TOO_MUCH_MEMORY: u64 = 3 << 30;
const LONGEST: usize = 64 * 1024;
/// Inputs that are mutated further.
const POOL: usize = 2_000;
/// Of an input that goes into the corpus.
const KEPT: usize = 2_048;

/// What is fuzzed.
pub struct Target {
    /// Of its folder in the corpus.
    pub name: &'static str,
    /// What mutations put in.
    pub words: &'static [&'static str],
    /// Bytes that an input may hold at once: some, and so many for each of its own.
    pub memory: (u64, u64),
}

/// Memory is counted and time is taken for one input at a time.
static ONE: Mutex<()> = Mutex::new(());
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

struct Running {
    target: &'static str,
    input: Vec<u8>,
    since: Instant,
}

impl Target {
    /// `check` panics where something does not hold, and returns the shape of what happened.
    pub fn run<S: Hash + Debug>(&self, check: impl Fn(&[u8]) -> S) {
        let _one = lock(&ONE);
        watch();
        let mut pool = self.corpus();
        let mut shapes = HashSet::new();
        for input in &pool {
            shapes.insert(self.one(input, &check));
        }
        let (time, seed) = (time(), seed());
        eprintln!(
            "{}: {} inputs, then {time:?} with FUZZ_SEED={seed}",
            self.name,
            pool.len()
        );
        let mut random = StdRng::seed_from_u64(seed);
        let (until, mut count) = (Instant::now() + time, 0_u64);
        while Instant::now() < until {
            let input = self.mutated(&pool, &mut random);
            count += 1;
            if shapes.insert(self.one(&input, &check)) && pool.len() < POOL {
                self.keep(&input);
                pool.push(input);
            }
        }
        eprintln!("{}: {count} mutations, {} shapes", self.name, shapes.len());
    }

    fn corpus(&self) -> Vec<Vec<u8>> {
        let mut files: Vec<PathBuf> = fs::read_dir(self.folder())
            .unwrap_or_else(|error| panic!("{}: {error}", self.folder().display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no corpus", self.name);
        files.iter().map(|file| fs::read(file).unwrap()).collect()
    }

    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fuzz/corpus")
            .join(self.name)
    }

    /// Runs one input; a hash of its shape.
    fn one<S: Hash>(&self, input: &[u8], check: &impl Fn(&[u8]) -> S) -> u64 {
        *lock(&RUNNING) = Some(Running {
            target: self.name,
            input: input.to_owned(),
            since: Instant::now(),
        });
        let began = Instant::now();
        let mut shape = None;
        let memory = allocation_counter::measure(|| {
            shape = Some(catch_unwind(AssertUnwindSafe(|| {
                let mut hash = DefaultHasher::new();
                check(input).hash(&mut hash);
                hash.finish()
            })));
        });
        let took = began.elapsed();
        *lock(&RUNNING) = None;
        let shape = shape
            .unwrap()
            .unwrap_or_else(|panic| self.fail(input, panic));
        let allowed = self.memory.0 + self.memory.1 * input.len() as u64;
        if memory.bytes_max > allowed {
            let what = format!("it held {} bytes, {allowed} are allowed", memory.bytes_max);
            self.fail(input, Box::new(what));
        }
        if took > SLOW {
            self.fail(input, Box::new(format!("it took {took:?}")));
        }
        shape
    }

    fn fail(&self, input: &[u8], problem: Box<dyn Any + Send>) -> ! {
        let kept = kept(self.name, input);
        let what = problem
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| problem.downcast_ref::<&str>().copied())
            .unwrap_or("it panicked");
        eprintln!(
            "{}: {what}\n{}: the input is in {}",
            self.name,
            self.name,
            kept.display()
        );
        resume_unwind(problem)
    }

    /// With `FUZZ_KEEP`, into the corpus.
    fn keep(&self, input: &[u8]) {
        if env::var_os("FUZZ_KEEP").is_some() && input.len() <= KEPT {
            fs::write(self.folder().join(format!("kept-{}", name(input))), input).unwrap();
        }
    }

    fn mutated(&self, pool: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
        let mut input = pool.choose(random).unwrap().clone();
        for _ in 0..random.random_range(1..=6) {
            self.mutate(&mut input, pool, random);
        }
        input.truncate(LONGEST);
        input
    }

    fn mutate(&self, input: &mut Vec<u8>, pool: &[Vec<u8>], random: &mut StdRng) {
        let piece = piece(input, random);
        match random.random_range(0..11) {
            0 => {
                let other = pool.choose(random).unwrap();
                let taken = other[self::piece(other, random)].to_vec();
                input.splice(piece, taken);
            }
            1 => drop(input.drain(piece)),
            2 => {
                let copy = input[piece.clone()].to_vec();
                input.splice(piece.end..piece.end, copy);
            }
            3 => {
                // Deep, long, or many.
                let times = LONGEST / (piece.len() + 1) / random.random_range(1..64);
                let copies = input[piece.clone()].repeat(times);
                input.splice(piece.end..piece.end, copies);
            }
            4 => {
                let bytes: Vec<u8> = (0..random.random_range(1..16))
                    .map(|_| random.random())
                    .collect();
                input.splice(piece, bytes);
            }
            5 => {
                if let Some(byte) = input.get_mut(piece.start) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
            6 => {
                let number = EXTREMES.choose(random).unwrap();
                let digits = digits(input, piece.start);
                input.splice(digits, number.bytes());
            }
            7 => {
                let binary = random.random_range(0..=u64::MAX) >> random.random_range(0..64);
                let length = *[1, 2, 4, 8].choose(random).unwrap();
                for (byte, new) in input
                    .iter_mut()
                    .skip(piece.start)
                    .zip(&binary.to_le_bytes()[..length])
                {
                    *byte = *new;
                }
            }
            8 => {
                let character = HOSTILE.choose(random).unwrap();
                input.splice(piece.start..piece.start, character.bytes());
            }
            9 => {
                let word = self.words.choose(random).copied().unwrap_or_default();
                input.splice(piece.start..piece.start, word.bytes());
            }
            _ => {
                let word = self.words.choose(random).copied().unwrap_or_default();
                input.splice(piece, word.bytes());
            }
        }
    }
}

/// Numbers at which things break.
const EXTREMES: &[&str] = &[
    "0",
    "-1",
    "1e999",
    "-0.0",
    "2147483648",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551616",
    "99999999999999999999999999999999",
];

/// Characters that act on a reader or a terminal.
const HOSTILE: &[&str] = &[
    "\u{1b}[2J",
    "\u{9b}",
    "\u{7}",
    "\r",
    "\n",
    "\0",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{e0041}",
    "\u{301}",
    "é",
    "\u{1f600}",
    "\u{d7ff}",
    "\u{fffd}",
];

/// A piece of an input, often short.
fn piece(input: &[u8], random: &mut StdRng) -> std::ops::Range<usize> {
    let start = random.random_range(0..=input.len());
    let most = match random.random_range(0..3) {
        0 => 4,
        1 => 32,
        _ => usize::MAX,
    };
    let length = random.random_range(0..=(input.len() - start).min(most));
    start..start + length
}

/// The digits at or behind a place; none there: nothing, at this place.
fn digits(input: &[u8], from: usize) -> std::ops::Range<usize> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let Some(start) = input[from..].iter().position(is_digit) else {
        return from..from;
    };
    let start = from + start;
    let length = input[start..]
        .iter()
        .take_while(|byte| is_digit(byte))
        .count();
    start..start + length
}

fn time() -> Duration {
    env::var("FUZZ_SECONDS").map_or(MOMENT, |seconds| {
        Duration::from_secs_f64(seconds.parse().expect("FUZZ_SECONDS is a number"))
    })
}

fn seed() -> u64 {
    match (env::var("FUZZ_SEED"), env::var_os("FUZZ_SECONDS")) {
        (Ok(seed), _) => seed.parse().expect("FUZZ_SEED is a number"),
        (Err(_), Some(_)) => rand::random(),
        (Err(_), None) => 0,
    }
}

fn name(input: &[u8]) -> String {
    let mut hash = DefaultHasher::new();
    input.hash(&mut hash);
    format!("{:016x}", hash.finish())
}

/// Keeps an input for whoever looks into it.
fn kept(target: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    let file = folder.join(format!("{target}-{}", name(input)));
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&file, input))
        .unwrap();
    file
}

/// Ends the process where an input hangs or takes too much memory: nothing else would.
fn watch() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        thread::spawn(|| {
            loop {
                thread::sleep(Duration::from_millis(100));
                let running = lock(&RUNNING);
                let Some(running) = &*running else { continue };
                let problem = if running.since.elapsed() > HANGS {
                    "it hangs"
                } else if resident() > TOO_MUCH_MEMORY {
                    "it takes too much memory"
                } else {
                    continue;
                };
                let kept = kept(running.target, &running.input);
                eprintln!(
                    "{}: {problem}: the input is in {}",
                    running.target,
                    kept.display()
                );
                std::process::exit(101);
            }
        });
    });
}

/// Bytes of this process in memory, where the system tells.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
