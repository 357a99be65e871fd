//! Which of many cases of a test are played. All of them take longer than whoever changes something waits for, so each
//! third one is; `CLUSTERWRIGHT_ALL_CASES=1` plays all.

/// Each third of them, or all where they are three or fewer; another turn (0, 1 or 2) plays others, and all three
/// together play each.
pub fn some<T>(all: Vec<T>, turn: usize) -> Vec<T> {
    let is_all = std::env::var_os("CLUSTERWRIGHT_ALL_CASES").is_some();
    of_turn(all, turn, is_all)
}

/// Of three that follow each other one, each time at another place: what comes again after so many is not left out.
fn of_turn<T>(all: Vec<T>, turn: usize, is_all: bool) -> Vec<T> {
    let is_all = is_all || all.len() <= 3;
    let is_its = |number: usize| is_all || (number / 3 + number + turn).is_multiple_of(3);
    all.into_iter().enumerate().filter(|(number, _)| is_its(*number)).map(|(_, case)| case).collect()
}

#[test]
fn three_turns_play_each_case_once_and_each_turn_some_of_what_comes_again() {
    let turns = [0, 1, 2].map(|turn| of_turn((0..36).collect(), turn, false));
    assert_eq!(turns.each_ref().map(Vec::len), [12; 3]);
    let mut played: Vec<i32> = turns.concat();
    played.sort_unstable();
    assert_eq!(played, (0..36).collect::<Vec<_>>());
    for period in [2, 6] {
        for turn in &turns {
            let mut places: Vec<i32> = turn.iter().map(|case| case % period).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places, (0..period).collect::<Vec<_>>(), "of {period}");
        }
    }
    assert_eq!(of_turn(vec!['a', 'b'], 1, false), ['a', 'b']);
    assert_eq!(of_turn((0..36).collect(), 1, true).len(), 36);
}
