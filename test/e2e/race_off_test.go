//go:build !race

package e2e_test

// raceEnabled makes the controller under test watch for races if the tests do.
const raceEnabled = false
