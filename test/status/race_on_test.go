//go:build race

package status_test

// raceEnabled makes the controller under test watch for races if the tests do.
const raceEnabled = true
