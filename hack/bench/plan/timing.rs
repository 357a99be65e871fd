//! Times of calls, in processor time, so that what else the machine does counts for little.

use std::error::Error;
use std::fs;
use std::time::Duration;

/// Calls are repeated for this long: the kernel's account of the thread is some milliseconds behind.
const LEAST: Duration = Duration::from_millis(60);

/// Processor time of one call.
pub fn of_call(call: &dyn Fn()) -> Result<Duration, Box<dyn Error>> {
    let start = processor_time()?;
    let mut calls = 0;
    let mut batch = 1;
    loop {
        (0..batch).for_each(|_| call());
        calls += batch;
        let spent = processor_time()?.saturating_sub(start);
        if spent >= LEAST {
            return Ok(spent / calls);
        }
        batch = calls;
    }
}

/// Processor time that this thread has had.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().unwrap_or_default();
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// The smallest, the middle and the largest of some figures.
pub fn spread(mut figures: Vec<f64>) -> Option<(f64, f64, f64)> {
    figures.sort_by(f64::total_cmp);
    Some((*figures.first()?, *figures.get(figures.len() / 2)?, *figures.last()?))
}
