//! A file of 1 GiB, and how fast things go. The figures count when this is run alone, in a release build, on a quiet machine:
//!
//! ```sh
//! ZERTO_REWIND_REQUIRE_ALL=1 cargo test --release -p zvm-sim --test guest_disks -- --nocapture speed
//! ```

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Lab, has_room, is_required, noise};

const GIB: usize = 1 << 30;

#[test]
fn a_file_of_one_gibibyte_survives_in_bounded_memory() {
    let what = "a file of 1 GiB, which takes 8 GiB of disk";
    if !is_required(what) || !has_room(what, 9) {
        return;
    }
    let mut lab = Lab::with(4 << 30, |_| {});
    let piece = noise(1, 64 << 20);
    let (one, two) = (lab.path("one"), lab.path("two"));
    write(&one, 0, &piece);
    let watch = Watch::start();
    lab.disk.sync(1).unwrap();
    watch.stop("sync of a new file of 1 GiB", 1);

    write(&one, 100, &piece);
    let watch = Watch::start();
    lab.disk.sync(2).unwrap();
    watch.stop("sync of 1 GiB in which 16 blocks differ", 1);

    write(&two, 0, &piece);
    lab.disk.sync(3).unwrap();
    write(&two, 50, &noise(2, 64 << 20));
    let watch = Watch::start();
    lab.disk.sync(4).unwrap();
    watch.stop("sync of 1 GiB in which every block differs", 1);

    for (point, name, first) in [(1, "one", 0), (4, "one", 100), (3, "two", 0)] {
        let mut reader = lab.disk.at(point).unwrap().open(name).unwrap();
        let mut buffer = vec![0; 64 << 10];
        let mut bytes = 0;
        let watch = Watch::start();
        while let read @ 1.. = reader.read(&mut buffer).unwrap() {
            bytes += read;
        }
        watch.stop(&format!("streaming 1 GiB out, `{name}` at {point}"), 1);
        assert_eq!(bytes, GIB);
        let mut reader = lab.disk.at(point).unwrap().open(name).unwrap();
        let mut buffer = vec![0; piece.len()];
        for number in 0..16 {
            reader.read_exact(&mut buffer).unwrap();
            assert_eq!(buffer[0], first + number);
            assert!(buffer[1..] == piece[1..]);
        }
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory of all tests so far: {} MiB", peak >> 20);
        assert!(peak < 900 << 20);
    }
    for point in 1..=4 {
        lab.check_clean(point);
    }
}

#[test]
fn small_syncs_are_cheap() {
    if !is_required("figures of small syncs") {
        return;
    }
    let mut lab = Lab::new();
    for folder in 0..5 {
        fs::create_dir(lab.path(&format!("{folder}"))).unwrap();
        for file in 0..10 {
            lab.write(&format!("{folder}/{file}"), noise(file, 2000));
        }
    }
    // Until the files are old enough for their times to be trusted.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        lab.disk.sync(1).unwrap();
    }
    let watch = Watch::start();
    for _ in 0..1000 {
        assert!(!lab.disk.sync(1).unwrap().changed);
    }
    watch.stop("idle sync of 50 files", 1000);
    let watch = Watch::start();
    for point in 2..202 {
        lab.write("1/1", format!("content {point}"));
        assert!(lab.disk.sync(point).unwrap().changed);
    }
    watch.stop("edit and sync of one file among 50", 200);
}

fn write(path: &Path, first: u8, piece: &[u8]) {
    let mut file = fs::File::create(path).unwrap();
    for number in 0..16 {
        file.write_all(&[first + number]).unwrap();
        file.write_all(&piece[1..]).unwrap();
    }
}

/// Measures time on the wall, and the processor's time in this process, which a busy machine distorts less.
struct Watch {
    wall: Instant,
    processor: Option<Duration>,
}

impl Watch {
    fn start() -> Self {
        let processor = processor_time();
        let wall = Instant::now();
        Self { wall, processor }
    }

    fn stop(self, what: &str, times: u32) {
        let wall = self.wall.elapsed() / times;
        let processor = processor_time()
            .zip(self.processor)
            .map(|(now, then)| (now - then) / times);
        println!(
            "{what}: {wall:.2?}, processor {:.2?}",
            processor.unwrap_or_default()
        );
    }
}

/// User and system time of this process, in ticks of 10 ms.
fn processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11);
    let user: u64 = ticks.next()?.parse().ok()?;
    let system: u64 = ticks.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}
