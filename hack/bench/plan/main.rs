//! How the cost of the planners grows with the fleet: the time of one call with 100, 1 000 and 10 000 Machines and as
//! many Hosts, or so many clusters of an Addon, and from one size to the next. Nothing is asserted: times are this
//! machine's, growth is the planner's.
//!
//! `cargo bench --package plan --bench growth -- [--sizes N,N...] [--rounds N] [WORD...]`; with words, only the cases
//! that have all of them in their names.

mod addons;
mod cases;
mod fleet;
mod timing;

use std::error::Error;
use std::time::Duration;

use cases::{CASES, Case};

/// A size is left out when a call is expected to take longer than this, by what the one before it took.
const LONGEST: Duration = Duration::from_secs(20);

struct Options {
    sizes: Vec<usize>,
    rounds: usize,
    words: Vec<String>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options { sizes: vec![100, 1_000, 10_000], rounds: 5, words: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo's own.
            "--bench" => {}
            "--sizes" => {
                let sizes = arguments.next().ok_or("--sizes needs a value, e.g. 100,1000")?;
                options.sizes = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--rounds" => options.rounds = arguments.next().ok_or("--rounds needs a number")?.parse()?,
            _ => options.words.push(argument),
        }
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    println!("{:<58} {:>8} {:>11} {:>11}  growth: median (least to most)", "planner", "objects", "a call", "an object");
    let is_wanted = |case: &&Case| options.words.iter().all(|word| case.name.contains(word.as_str()));
    for case in CASES.iter().filter(is_wanted) {
        measure(case, &options)?;
    }
    Ok(())
}

/// Sizes take turns, so that a slow moment of the machine slows all of them; growth is taken round by round.
fn measure(case: &Case, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut calls: Vec<(usize, Box<dyn Fn()>)> = Vec::new();
    for size in &options.sizes {
        if let Some((smaller, call)) = calls.last() {
            let growth = u32::try_from(size / smaller)?;
            if timing::of_call(call)? * growth * growth > LONGEST {
                println!("{:<58} {size:>8} left out: too slow", case.name);
                break;
            }
        }
        calls.push((*size, (case.build)(*size)?));
    }
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for _ in 0..options.rounds {
        let times = calls.iter().map(|(_, call)| timing::of_call(call));
        let times: Vec<Duration> = times.collect::<Result<_, _>>()?;
        rounds.push(times.iter().map(Duration::as_secs_f64).collect());
    }
    for (index, (size, _)) in calls.iter().enumerate() {
        let times = rounds.iter().filter_map(|round| round.get(index).copied()).collect();
        let (_, time, _) = timing::spread(times).ok_or("no round was measured")?;
        let growth = index.checked_sub(1).and_then(|before| {
            let ratio = |round: &Vec<f64>| Some(round.get(index)? / round.get(before)?);
            timing::spread(rounds.iter().filter_map(ratio).collect())
        });
        let growth =
            growth.map_or_else(String::new, |(least, median, most)| format!("x {median:.1} ({least:.1} to {most:.1})"));
        let each = time / u32::try_from(*size).map(f64::from)?;
        println!("{:<58} {size:>8} {:>11} {:>11}  {growth}", case.name, human(time), human(each));
    }
    Ok(())
}

fn human(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        seconds if seconds >= 1e-6 => format!("{:.2} us", seconds * 1e6),
        seconds => format!("{:.1} ns", seconds * 1e9),
    }
}
