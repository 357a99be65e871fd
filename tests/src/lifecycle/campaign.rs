//! All scenes that are asked for: two clusters at a time, and those that are measured alone.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::course::Course;
use super::scene::Scene;
use super::table::Row;

/// Two cores drive two clusters well.
const SIDE_BY_SIDE: usize = 2;

/// Plays the scenes and says how each went, in their order.
pub fn run(scenes: &[Scene]) -> Vec<Row> {
    let courses = Course::ALL.map(|course| {
        let of = |scene: &Scene| scene.course() == course;
        let ours: Vec<Scene> = Scene::ALL
            .into_iter()
            .filter(of)
            .filter(|s| scenes.contains(s))
            .collect();
        (course, ours)
    });
    let asked = courses.into_iter().filter(|(_, scenes)| !scenes.is_empty());
    let (alone, beside): (Vec<_>, Vec<_>) = asked.partition(|(course, _)| course.goes_alone());
    let rows = Mutex::new(Vec::new());
    work(beside, SIDE_BY_SIDE, &rows);
    work(alone, 1, &rows);
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|row: &Row| row.scene);
    rows
}

fn work(courses: Vec<(Course, Vec<Scene>)>, threads: usize, rows: &Mutex<Vec<Row>>) {
    let queue = Mutex::new(VecDeque::from(courses));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let queue = &queue;
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((course, scenes)) = next else {
                        return;
                    };
                    let played = play(course, &scenes);
                    rows.lock().unwrap_or_else(PoisonError::into_inner).extend(played);
                }
            });
        }
    });
}

/// On a runtime of its own: what blocks one cluster does not hold up the other.
fn play(course: Course, scenes: &[Scene]) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(course.play(scenes)),
        Err(error) => scenes
            .iter()
            .map(|scene| Row {
                scene: *scene,
                seen: Err(format!("failed to start a runtime: {error}")),
                took: std::time::Duration::ZERO,
            })
            .collect(),
    }
}
